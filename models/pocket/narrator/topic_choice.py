"""When a narrator looks at the frames, and which topic it chooses: pure functions of its state."""

from dataclasses import replace

from reverie.models.pocket.narration.vocabulary import Topic, topic_slots
from reverie.models.pocket.narrator.state import NOTHING_SEEN, Glance, NarratorState

LOOK_EVERY = 6
"""Frames from one look to the next."""
QUIET = 30
"""Least number of frames between two unasked utterances."""


def should_look(state: NarratorState, frame: int) -> bool:
    """Tell whether to look at a frame; after going back to an earlier frame the answer is yes."""
    if state.asked:
        return True
    since = frame - state.looked_at
    return state.narrate and (state.looked_at < 0 or since >= LOOK_EVERY or since < 0)


def note_look(
    state: NarratorState, glance: Glance, frame: int
) -> tuple[NarratorState, Topic | None]:
    """Record what a look has read; also return the topic to speak of unasked, if there is one.

    A topic is due when two looks read the same and it differs from what was last said. Of several
    topics, the one that was not spoken of for longest is chosen.
    """
    backwards = frame < state.looked_at
    sure = NOTHING_SEEN if backwards else state.glance
    spoke_at = -1 if frame < state.spoke_at else state.spoke_at
    state = replace(state, glance=glance, looked_at=frame, spoke_at=spoke_at)
    if not state.narrate or (spoke_at >= 0 and frame - spoke_at < QUIET):
        return state, None
    first = spoke_at < 0 and not any(state.told)
    for topic in state.topics:
        slots = topic_slots(topic)
        steady = first or all(glance[slot] == sure[slot] for slot in slots)
        if steady and any(glance[slot] != state.told[slot] for slot in slots):
            return state, topic
    return state, None


def mark_told(state: NarratorState, topic: Topic) -> NarratorState:
    """Return the state in which a topic counts as told and goes to the end of the order."""
    slots = topic_slots(topic)
    told = tuple(
        state.glance[slot] if slot in slots else old for slot, old in enumerate(state.told)
    )
    others = tuple(other for other in state.topics if other != topic)
    return replace(state, told=told, topics=(*others, topic), spoke_at=state.looked_at)
