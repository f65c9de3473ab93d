"""What pocket's `auto` means on this machine: precision, threads and denoise steps.

Only a CPU is calibrated. What a deployment names is never overruled; it is measured, so that the
operator learns what it costs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from reverie.models.contract.instance import AUTO, LoadOptions
from reverie.models.contract.spec import LoopSpec, ModelSpec
from reverie.models.contract.speed import ComputeSetting, MeasuredSpeed
from reverie.models.pocket.network.frame_inputs import FrameCondition
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.network.sampler import CONTEXT_LEVEL, next_point
from reverie.models.services.calibration import (
    CLEARLY,
    SettingTimes,
    Stopwatch,
    choose,
    measure,
    steps_for,
)
from reverie.models.services.cores import available_cores
from reverie.models.services.placement import CPU_THREADS

FEWEST_STEPS = 2
"""With one, the bars of the evaluation are met, and the land becomes all of one kind."""
HEADROOM = 1.25
"""How much faster than its rate a model must be, so that server and browser find room."""

_THREADS = (2, 4, 8)
"""Numbers of threads to try; more share too little work."""

Networks = Callable[[str], PocketNets]
"""Loads the networks in a precision."""


class PocketUnit:
    """The work of one picture of one session, with a full window."""

    def __init__(self, nets: PocketNets) -> None:
        """Prepare inputs; their values do not matter."""
        world = nets.world.config
        self._nets = nets
        block = (2, world.layers, world.heads, world.tokens, world.head_size)
        self._cached = torch.ones((1, world.window - 1, *block), dtype=nets.dtype)
        self._latents = torch.zeros(1, world.latent_channels, world.grid, world.grid)
        self._text = torch.zeros(world.text_width)
        with torch.inference_mode():
            self._past = nets.world.read(self._cached)

    @torch.inference_mode()
    def step(self) -> None:
        """Run one denoise step.

        Raises:
            ArithmeticError: what comes out is not finite.
        """
        conditions = [FrameCondition(1.0, 0, self._text)]
        clean = self._nets.world.predict(self._latents, self._latents, conditions, self._past)
        if not bool(next_point(self._latents, clean, 1.0, 0.5).isfinite().all()):
            raise ArithmeticError("what comes out is not finite")

    @torch.inference_mode()
    def rest(self) -> None:
        """Read the window, write the context, and decode."""
        self._past = self._nets.world.read(self._cached)
        conditions = [FrameCondition(CONTEXT_LEVEL, 0, self._text)]
        self._nets.world.remember(self._latents, self._latents, conditions, self._past)
        self._nets.decode(self._latents)


@dataclass(frozen=True, slots=True)
class PocketChoice:
    """Networks in the chosen precision, and what was measured."""

    nets: PocketNets
    speed: MeasuredSpeed


def calibrated(
    options: LoadOptions,
    spec: ModelSpec,
    plain: str,
    networks: Networks,
    clock: Stopwatch | None = None,
    cores: int | None = None,
) -> PocketChoice:
    """Measure for `options.calibration_s`, and return the networks as they are to be served.

    Sets the number of CPU threads of this process.

    Args:
        plain: the precision that a CPU of this kind gets without a calibration.
        networks: loads them in a precision; what it raises for another than the first one is a
            reason to go without.
        cores: that all workers may use; None finds out.
    """
    loop = spec.loops[0]
    usual_steps, rate_hz = _usual_steps(loop), loop.streams[0].rate_hz
    bench = _Bench(networks)
    share = (cores or available_cores()) // options.workers
    allowed, compared = _settings(options, spec, plain, share)
    bench.load(allowed[0].precision)
    times = measure(
        (*allowed, *compared), bench.prepare, options.calibration_s, clock or Stopwatch()
    )
    best, reason = choose(times[: len(allowed)], options.steps or usual_steps)
    torch.set_num_threads(best.setting.threads)
    steps = options.steps or steps_for(best, usual_steps, FEWEST_STEPS, HEADROOM * rate_hz)
    speed = MeasuredSpeed(
        setting=best.setting,
        steps=steps,
        makes_hz=best.speed(steps).rate_hz,
        declared_hz=rate_hz,
        reason=reason,
        tried=tuple(each.speed(steps) for each in times),
        warning=slower(best, times[len(allowed) :], steps),
    )
    return PocketChoice(bench.load(best.setting.precision), speed)


class _Bench:
    """The networks in each precision that was asked for."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._loaded: dict[str, PocketNets] = {}
        self._units: dict[str, PocketUnit] = {}

    def load(self, precision: str) -> PocketNets:
        if precision not in self._loaded:
            self._loaded[precision] = self._networks(precision)
        return self._loaded[precision]

    def prepare(self, setting: ComputeSetting) -> PocketUnit:
        nets = self.load(setting.precision)
        if setting.precision not in self._units:
            self._units[setting.precision] = PocketUnit(nets)
        torch.set_num_threads(setting.threads)
        return self._units[setting.precision]


def _settings(
    options: LoadOptions, spec: ModelSpec, plain: str, cores: int
) -> tuple[list[ComputeSetting], list[ComputeSetting]]:
    """Return what may be chosen, the plain setting first, and what it is only compared with."""
    named = options.precision != AUTO
    precisions = [options.precision] if named else list(dict.fromkeys((plain, *spec.precisions)))
    if options.threads:
        allowed = [ComputeSetting(kind, options.threads) for kind in precisions]
        alone = ComputeSetting(precisions[0], CPU_THREADS)
        return allowed, [] if alone in allowed else [alone]
    # The server and a browser need a core, and threads that wait for one are slower than one.
    counts = [CPU_THREADS, *(n for n in _THREADS if n <= cores - 1)]
    return [ComputeSetting(kind, count) for count in counts for kind in precisions], []


def _usual_steps(loop: LoopSpec) -> int:
    return int(next(each.default for each in loop.parameters if each.name == "steps"))


def slower(best: SettingTimes, compared: Sequence[SettingTimes], steps: int) -> str:
    """Return a warning where a named number of threads is slower than another one, else ""."""
    for other in compared:
        rates = best.speed(steps).rate_hz, other.speed(steps).rate_hz
        if rates[0] and rates[1] and rates[1] > CLEARLY * rates[0]:
            return (
                f"threads: {best.setting.threads} makes {rates[0]:.1f} pictures a second here, and "
                f"threads: {other.setting.threads} makes {rates[1]:.1f}"
            )
    return ""
