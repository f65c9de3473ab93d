"""The durable part of a conversation: its messages, and the generator that it continues with.

The cache is the derived part. No unit rebuilds it: the next answer reads all of the conversation
that it does not hold. The pieces begin elsewhere then, so that sums may differ in their last bits:
the rebuild is not exact.
"""

import json
from dataclasses import asdict

from reverie.models.causal_lm.conversation import Message
from reverie.models.causal_lm.sampling import SamplingOptions
from reverie.models.causal_lm.state import ChatState
from reverie.models.contract.loop import Durable


def durable_chat(state: ChatState, loop: str, weights_version: str) -> Durable:
    """Return the durable part; an answer in progress is lost."""
    kept = {
        "prompt": state.prompt,
        "messages": [[message.role, message.text] for message in state.messages],
        "sampling": asdict(state.sampling),
        "longest": state.longest,
    }
    return Durable(loop, weights_version, {"random": state.random.cpu()}, json.dumps(kept))


def revived_chat(durable: Durable) -> ChatState:
    """Return a conversation that waits for the next turn, with an empty cache."""
    kept = json.loads(durable.text)
    return ChatState(
        prompt=kept["prompt"],
        sampling=SamplingOptions(**kept["sampling"]),
        longest=kept["longest"],
        random=durable.data["random"],
        messages=tuple(Message(role, text) for role, text in kept["messages"]),
    )
