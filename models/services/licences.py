"""The licences of public weights of the shipped families, each with the page that states it.

The licence of a family is that of its code here. Weights have their own, and some of the most used
ones exclude commercial use. Licences are not guessed, and the weights in a folder are not
identified.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

NC = "CC BY-NC-SA 4.0"


@dataclass(frozen=True, slots=True)
class PublicWeights:
    """Published weights.

    Attributes:
        name: as their publisher calls them.
        licence: its name.
        source: the page that states the licence.
        commercial: whether the licence allows commercial use.
        remark: what else matters about the licence.
    """

    name: str
    licence: str
    source: str
    commercial: bool = True
    remark: str = ""

    def __str__(self) -> str:
        """Return one line for people."""
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
                remark="their code has been Apache-2.0 since November 2025",
            ),
            PublicWeights("TAEHV (taew2_1)", "MIT", "https://github.com/madebyollin/taehv"),
        ),
        "diamond": (
            PublicWeights(
                "DIAMOND, Atari and CS:GO",
                "MIT",
                "https://github.com/eloialonso/diamond",
                remark="licence of their repository; the card of the weights names none",
            ),
        ),
        "oasis": (PublicWeights("Oasis-500M", "MIT", f"{_HUB}Etched/oasis-500m"),),
    }
)
"""By the name of the family."""


def public_weights(family: object, name: str) -> tuple[PublicWeights, ...]:
    """Return the public weights of a shipped family; none for a family that a package adds."""
    ours = type(family).__module__.startswith("reverie.models.")
    return PUBLIC_WEIGHTS.get(name, ()) if ours else ()
