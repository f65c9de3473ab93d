"""Causal Wan with tiny random weights: the real loop, VAE and all."""

from reverie.models.contract.instance import LoadOptions
from reverie.models.wan.checkpoint.loading import TINY, TINY_CAUSAL, TINY_GRID
from reverie.models.wan.config import RANDOM
from reverie.models.wan.description import wan_spec
from reverie.models.wan.spec import Wan


class TinyWan(Wan):
    """Says its true sizes before it is loaded."""

    spec = wan_spec(TINY, TINY_CAUSAL, TINY_GRID)


def tiny_options(sessions: int = 4, history_chunks: int = 3) -> LoadOptions:
    return LoadOptions(
        device="cpu", checkpoint=RANDOM, sessions=sessions, history_chunks=history_chunks
    )
