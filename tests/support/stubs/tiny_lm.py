"""A language model with tiny random weights: the real loop, pages and sampling included."""

from reverie.models.causal_lm.config import RANDOM
from reverie.models.causal_lm.spec import CausalLm, chat_spec
from reverie.models.contract.instance import LoadOptions

CONTEXT = 512


class TinyLm(CausalLm):
    """Says its true sizes before it is loaded."""

    spec = chat_spec(CONTEXT)


def tiny_options(sessions: int = 4, history_chunks: int = 3) -> LoadOptions:
    return LoadOptions(
        device="cpu", checkpoint=RANDOM, sessions=sessions, history_chunks=history_chunks
    )
