"""What the public weights of the shipped families allow, each with the page that says so.

The licence of a family is that of its code here. Weights have one of their own, and some of those
that people use most are not for commercial use. What no page says is not guessed; of a folder it is
not told whose weights it holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

NC = "CC BY-NC-SA 4.0"


@dataclass(frozen=True, slots=True)
class PublicWeights:
    """Weights that were published.

    Attributes:
        name: what their publisher calls them.
        licence: its name.
        source: the page that names the licence.
        commercial: whether it allows commercial use.
        remark: what else is to be known of it.
    """

    name: str
    licence: str
    source: str
    commercial: bool = True
    remark: str = ""

    def __str__(self) -> str:
        """Say it in a line."""
        limits = "" if self.commercial else ", not for commercial use"
        remark = f"; {self.remark}" if self.remark else ""
        return f"{self.name}: {self.licence}{limits} ({self.source}){remark}"


_HUB = "https://huggingface.co/"

PUBLIC_WEIGHTS: Mapping[str, tuple[PublicWeights, ...]] = MappingProxyType(
    {
        "wan": (
            PublicWeights("Wan2.1-T2V-1.3B", "Apache-2.0", f"{_HUB}Wan-AI/Wan2.1-T2V-1.3B"),
            PublicWeights("Wan2.1-T2V-14B", "Apache-2.0", f"{_HUB}Wan-AI/Wan2.1-T2V-14B"),
            PublicWeights("Self-Forcing", NC, f"{_HUB}gdhe17/Self-Forcing", commercial=False),
            PublicWeights(
                "LongLive-1.3B",
                NC,
                f"{_HUB}Efficient-Large-Model/LongLive-1.3B",
                commercial=False,
                remark="their code is Apache-2.0 since November 2025",
            ),
            PublicWeights("TAEHV (taew2_1)", "MIT", "https://github.com/madebyollin/taehv"),
        ),
        "diamond": (
            PublicWeights(
                "DIAMOND, Atari and CS:GO",
                "MIT",
                "https://github.com/eloialonso/diamond",
                remark="that is their repository's; the card of the weights names none",
            ),
        ),
        "oasis": (PublicWeights("Oasis-500M", "MIT", f"{_HUB}Etched/oasis-500m"),),
    }
)
"""By the name of the family."""


def public_weights(family: object, name: str) -> tuple[PublicWeights, ...]:
    """Return what is known of the weights of a family; nothing of one that a package added."""
    ours = type(family).__module__.startswith("reverie.models.")
    return PUBLIC_WEIGHTS.get(name, ()) if ours else ()
