"""The durable part of a conversation: what was said, and the generator that it goes on with.

The cache is the derived part. It is not rebuilt by units of its own: the next answer reads whatever
of the conversation is not in it. Pieces are cut elsewhere then, so that sums may differ in their
last bits: not exact.
"""

import json
from dataclasses import asdict

from reverie.models.causal_lm.conversation import Message
from reverie.models.causal_lm.sampling import SamplingOptions
from reverie.models.causal_lm.state import ChatState
from reverie.models.contract.loop import Durable


def durable_chat(state: ChatState, loop: str, weights_version: str) -> Durable:
    """Keep what goes on; an answer under way is lost."""
    kept = {
        "prompt": state.prompt,
        "messages": [[message.role, message.text] for message in state.messages],
        "sampling": asdict(state.sampling),
        "longest": state.longest,
    }
    return Durable(loop, weights_version, {"random": state.random.cpu()}, json.dumps(kept))


def revived_chat(durable: Durable) -> ChatState:
    """Return a conversation that waits for the next turn, with nothing of it read."""
    kept = json.loads(durable.text)
    return ChatState(
        prompt=kept["prompt"],
        sampling=SamplingOptions(**kept["sampling"]),
        longest=kept["longest"],
        random=durable.data["random"],
        messages=tuple(Message(role, text) for role, text in kept["messages"]),
    )
