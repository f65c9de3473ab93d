"""Oasis with tiny random weights: the real loop."""

from reverie.models.contract.instance import LoadOptions
from reverie.models.oasis.checkpoint import TINY_DIT, TINY_VAE
from reverie.models.oasis.spec import RANDOM, Oasis, oasis_spec


class TinyOasis(Oasis):
    """Says its true sizes before it is loaded."""

    spec = oasis_spec(TINY_DIT, TINY_VAE)


def tiny_options(sessions: int = 4, history_chunks: int = 3) -> LoadOptions:
    return LoadOptions(
        device="cpu", checkpoint=RANDOM, sessions=sessions, history_chunks=history_chunks
    )
