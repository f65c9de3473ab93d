"""DIAMOND with tiny random weights: the real loop, Heun, churn and upsampler included."""

from reverie.models.contract.instance import LoadOptions
from reverie.models.diamond.checkpoint import TINY
from reverie.models.diamond.spec import RANDOM, Diamond, diamond_spec


class TinyDiamond(Diamond):
    """Says its true sizes before it is loaded."""

    spec = diamond_spec(TINY)


def tiny_options(sessions: int = 4, history_chunks: int = 3) -> LoadOptions:
    return LoadOptions(
        device="cpu", checkpoint=RANDOM, sessions=sessions, history_chunks=history_chunks
    )
