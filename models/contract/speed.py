"""How fast a loaded model is on this machine, and what was chosen for it by measurement."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ComputeSetting:
    """A way to compute the same thing: a precision, and CPU threads for one step."""

    precision: str
    threads: int

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.precision} on {self.threads} thread{'s' if self.threads > 1 else ''}"


@dataclass(frozen=True, slots=True)
class SettingSpeed:
    """What one setting makes.

    Attributes:
        rate_hz: pictures a second; None when it was not measured.
        skipped: why it was not; empty when it was.
    """

    setting: ComputeSetting
    rate_hz: float | None
    skipped: str = ""

    def __str__(self) -> str:
        """Return it in words."""
        if self.rate_hz is None:
            return f"{self.setting}: skipped, {self.skipped}"
        return f"{self.setting}: {self.rate_hz:.1f} pictures a second"


@dataclass(frozen=True, slots=True)
class MeasuredSpeed:
    """What a short calibration chose when the model was loaded.

    Attributes:
        steps: denoise steps that sessions begin with; 0 where the model has none.
        makes_hz: pictures a second of one session, with nothing else on the model's cores; None
            where the machine was too busy to measure it.
        declared_hz: pictures a second that its streams declare.
        reason: why this setting, in words.
        tried: all settings that were compared.
        warning: what an operator should change; empty when all is well.
    """

    setting: ComputeSetting
    steps: int
    makes_hz: float | None
    declared_hz: float
    reason: str
    tried: tuple[SettingSpeed, ...] = ()
    warning: str = ""

    @property
    def keeps_rate(self) -> bool:
        """Whether it makes the pictures that it declares, as far as is known."""
        return self.makes_hz is None or self.makes_hz >= self.declared_hz

    @property
    def shortfall(self) -> str:
        """What people are told of a machine that is too slow; empty where it is not."""
        if self.keeps_rate or self.makes_hz is None:
            return ""
        made = f"{int(self.makes_hz)}" if self.makes_hz >= 1 else f"{self.makes_hz:.1f}"
        return f"makes {made} of {self.declared_hz:g} pictures a second here"

    def __str__(self) -> str:
        """Return it in a line, as in `7 of 12 pictures a second, with ...`."""
        steps = f", {self.steps} denoise step{'s' if self.steps > 1 else ''}" if self.steps else ""
        return f"{self._rate()}, with {self.setting}{steps} ({self.reason})"

    def _rate(self) -> str:
        if self.makes_hz is None:
            return "an unknown number of pictures a second"
        if self.keeps_rate:
            return f"{self.makes_hz:.1f} pictures a second"
        return f"{self.makes_hz:.1f} of {self.declared_hz:g} pictures a second"
