import pytest
import torch
from loop_rig import Rig
from tiny_pocket import tiny_options

from reverie.engine.inputs import ControlId, PromptInput
from reverie.models.contract.loop import LoopRequest
from reverie.models.pocket.network.text_encoder import TextEncoder, pad_ids
from reverie.models.pocket.network.vocabulary import MAX_TOKENS, Vocabulary
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.captions import read_caption, reminder
from reverie.models.pocket.spec import Pocket


def embedding(rig: Rig, heard: str) -> torch.Tensor:
    encoder = rig.instance.components["text"]
    assert isinstance(encoder, TextEncoder)
    with torch.inference_mode():
        row: torch.Tensor = encoder(pad_ids([Vocabulary.of_grammar().encode(heard).ids]))[0]
    return row


@pytest.mark.parametrize(
    ("prompt", "heard", "biome", "hour"),
    [
        ("now it is night", "a sandy desert now it is night", Biome.DESERT, Hour.NIGHT),
        ("make it snowy country", "by day make it snowy country", Biome.SNOW, Hour.DAY),
        ("snowy country at dusk", "snowy country at dusk", Biome.SNOW, Hour.DUSK),
        ("", "a sandy desert by day", Biome.DESERT, Hour.DAY),
    ],
)
def test_a_reminder_names_what_a_prompt_leaves_open(
    prompt: str, heard: str, biome: Biome, hour: Hour
) -> None:
    rig = Rig(Pocket(), tiny_options())
    driver = rig.open(LoopRequest("s1", 7, "a sandy desert by day", {"steps": 2}))
    rig.run_chunks("s1", 2)
    driver.push([PromptInput(ControlId("p"), prompt)])
    rig.run_chunks("s1", 1)
    state = driver.state
    assert (state.biome, state.hour) == (biome, hour)
    assert torch.equal(state.text_T, embedding(rig, heard))


def test_a_start_without_words_is_reminded_of_what_was_drawn() -> None:
    rig = Rig(Pocket(), tiny_options())
    driver = rig.open(LoopRequest("s1", 7, "", {"steps": 2}))
    rig.run_chunks("s1", 1)
    state = driver.state
    assert state.biome is not None
    assert state.hour is not None
    assert torch.equal(state.text_T, embedding(rig, reminder(state.biome, state.hour)))


@pytest.mark.parametrize("biome", list(Biome), ids=[b.name.lower() for b in Biome])
@pytest.mark.parametrize("hour", list(Hour), ids=[h.name.lower() for h in Hour])
def test_a_reminder_names_what_it_should(biome: Biome, hour: Hour) -> None:
    read = read_caption(reminder(biome, hour))
    assert (read.biome, read.hour) == (biome, hour)


def test_a_long_prompt_leaves_no_space_for_a_reminder() -> None:
    vocabulary = Vocabulary.of_grammar()
    prompt = vocabulary.encode("snow " * 40)
    assert vocabulary.remind(prompt, "by day") == prompt
    assert len(prompt.ids) == MAX_TOKENS
