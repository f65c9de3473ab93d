"""Short words for what tests of drivers do all the time."""

from loop_rig import Rig
from stub_model import Stamp, read_stamp

from reverie.engine.inputs import ControlId, KeysInput, PromptInput
from reverie.models.contract.controls import KeyEdge

UNITS = 4
"""Units of one chunk of the stub."""


def prompt(text: str, control: str = "p") -> PromptInput:
    return PromptInput(ControlId(control), text)


def keys(*edges: str, control: str = "k") -> KeysInput:
    """Return presses (`+up`) and releases (`-up`)."""
    parsed = tuple(KeyEdge(edge[1:], down=edge[0] == "+") for edge in edges)
    return KeysInput(ControlId(control), "move", parsed)


def stamps(rig: Rig, session: str = "s1") -> list[Stamp]:
    return [read_stamp(chunk.frames[0]) for chunk in rig.frames(session)]


def worlds(rig: Rig, session: str = "s1") -> list[int]:
    """Return the world's own count of each chunk that was put out."""
    return [stamp.chunk for stamp in stamps(rig, session)]


def all_blocks_are_free(rig: Rig) -> bool:
    assert rig.instance.blocks is not None
    return rig.instance.blocks.free == rig.instance.blocks.count
