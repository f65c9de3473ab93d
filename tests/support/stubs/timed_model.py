"""The stub as a model that times itself when it is loaded, and is too slow for what it declares."""

from dataclasses import replace

from stub_model import StubFamily

from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.speed import ComputeSetting, MeasuredSpeed, SettingSpeed

LOCATION = f"{__name__}:TimedFamily"

SETTING = ComputeSetting("float32", 1)
SPEED = MeasuredSpeed(
    setting=SETTING,
    steps=0,
    makes_hz=7.9,
    declared_hz=24.0,
    reason="no other setting is clearly faster",
    tried=(
        SettingSpeed(SETTING, 7.9),
        SettingSpeed(ComputeSetting("bfloat16", 1), None, "it is not supported"),
    ),
    warning="something is slow",
)


class TimedFamily(StubFamily):
    """Says what it was loaded with in its title."""

    def load(self, options: LoadOptions) -> ModelInstance:
        """Measure a speed, if there is time for it."""
        instance = super().load(options)
        loaded_with = f"{options.precision}, {options.threads}, {options.calibration_s:g}"
        speed = SPEED if options.calibration_s else None
        instance.spec = replace(instance.spec, title=loaded_with, speed=speed)
        return instance
