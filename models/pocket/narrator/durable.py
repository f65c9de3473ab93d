"""The durable part of a narrator's state: what it has said, so that it does not repeat it."""

import json

from reverie.models.contract.loop import Durable
from reverie.models.pocket.narration.vocabulary import Topic
from reverie.models.pocket.narrator.state import NarratorState


def durable_narrator(state: NarratorState, loop: str, weights_version: str) -> Durable:
    """Return counters and what was said, no tensors. An utterance in progress is lost."""
    kept = {
        "narrate": state.narrate,
        "told": state.told,
        "topics": state.topics,
        "spoke_at": state.spoke_at,
        "utterances": state.utterances,
    }
    return Durable(loop, weights_version, {}, json.dumps(kept))


def revived_narrator(durable: Durable) -> NarratorState:
    """Return a narrator that continues to watch."""
    kept = json.loads(durable.text)
    return NarratorState(
        narrate=bool(kept["narrate"]),
        told=tuple(kept["told"]),
        topics=tuple(Topic(topic) for topic in kept["topics"]),
        spoke_at=int(kept["spoke_at"]),
        utterances=int(kept["utterances"]),
    )
