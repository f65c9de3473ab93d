"""The durable part of a narrator's state: what it has told, so that it does not tell it again."""

import json

from reverie.models.contract.loop import Durable
from reverie.models.pocket.narration.vocabulary import Topic
from reverie.models.pocket.narrator.state import NarratorState


def durable_narrator(state: NarratorState, loop: str, weights_version: str) -> Durable:
    """Keep counters and what was told; no tensors. An utterance under way is lost."""
    kept = {
        "narrate": state.narrate,
        "told": state.told,
        "topics": state.topics,
        "spoke_at": state.spoke_at,
        "utterances": state.utterances,
    }
    return Durable(loop, weights_version, {}, json.dumps(kept))


def revived_narrator(durable: Durable) -> NarratorState:
    """Return a narrator that goes on watching."""
    kept = json.loads(durable.text)
    return NarratorState(
        narrate=bool(kept["narrate"]),
        told=tuple(kept["told"]),
        topics=tuple(Topic(topic) for topic in kept["topics"]),
        spoke_at=int(kept["spoke_at"]),
        utterances=int(kept["utterances"]),
    )
