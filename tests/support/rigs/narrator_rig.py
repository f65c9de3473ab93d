"""Narrators next to worlds, stepped by hand: a driver for each, all on one instance of pocket."""

from collections.abc import Callable
from dataclasses import dataclass, field

from loop_rig import Clock
from tiny_pocket import tiny_options

from reverie.engine.batch import run_batch
from reverie.engine.driver import DriverOptions, LoopDriver, LoopStart
from reverie.engine.emissions import ControlApplied, Emission, FramesOut, TextOut
from reverie.engine.inputs import ControlId, TurnInput
from reverie.engine.scheduler import StepScheduler
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import Durable, LoopKernel, LoopRequest
from reverie.models.pocket.narrator.state import NarratorState
from reverie.models.pocket.spec import Pocket
from reverie.models.pocket.world.state import PocketState

OPTIONS = DriverOptions(history_chunks=3)


@dataclass
class Pair:
    """The two loops of one session, and what they put out."""

    world: LoopDriver[PocketState]
    narrator: LoopDriver[NarratorState]
    frames: list[FramesOut] = field(default_factory=list)
    heard: list[Emission] = field(default_factory=list)

    @property
    def said(self) -> list[TextOut]:
        return [emission for emission in self.heard if isinstance(emission, TextOut)]

    @property
    def receipts(self) -> list[ControlApplied]:
        return [emission for emission in self.heard if isinstance(emission, ControlApplied)]

    @property
    def text(self) -> str:
        return "".join(out.text for out in self.said)

    def ask(self, text: str, control: str = "q") -> None:
        self.narrator.push([TurnInput(ControlId(control), text)])


class NarratorRig:
    """One instance and its sessions."""

    def __init__(self, family: Pocket | None = None) -> None:
        self.family = family or Pocket()
        self.instance: ModelInstance = self.family.load(tiny_options())
        self.world_kernel = self.family.kernel("world_model", self.instance)
        self.kernel: LoopKernel[NarratorState] = self.family.kernel("ar_decode", self.instance)
        self.clock = Clock()
        self.scheduler = StepScheduler(8)
        self.pairs: dict[str, Pair] = {}

    def open(
        self,
        session: str = "s1",
        *,
        narrate: bool = False,
        seed: int = 7,
        durable: Durable | None = None,
    ) -> Pair:
        parameters = {"steps": 1.0, "guidance": 1.0, "narrate": float(narrate), "pace": 0.0}
        request = LoopRequest(session, seed, "a frozen lake", parameters)
        world: LoopDriver[PocketState] = LoopDriver(
            self.world_kernel, self.instance, request, OPTIONS
        )
        narrator: LoopDriver[NarratorState] = LoopDriver(
            self.kernel,
            self.instance,
            request,
            OPTIONS,
            LoopStart(
                durable=durable,
                peers={"world_model": lambda: world.shown_state},
                peer_us=lambda: world.position.pts_us,
            ),
        )
        self.pairs[session] = Pair(world, narrator)
        return self.pairs[session]

    def walk(self, frames: int) -> None:
        """Let every world put out so many frames, and write the last one's cache block."""
        goals = {pair.world.session: len(pair.frames) + frames for pair in self.pairs.values()}
        for _ in range(200 * frames):
            waiting = [p for s, p in self.pairs.items() if len(p.frames) < goals[s]]
            if not waiting:
                return
            for pair in waiting:
                self._step_world(pair)
        raise AssertionError("the worlds do not get on")

    def speak(self) -> list[str]:
        """Run one batch of the narrators; return whose units ran."""
        now = self.clock.now_us
        found = [pair.narrator.ready(now) for pair in self.pairs.values()]
        picked = self.scheduler.pick([candidate for candidate in found if candidate])
        drivers = [self.pairs[candidate.session].narrator for candidate in picked]
        if drivers:
            run_batch(self.kernel, self.instance, drivers, self._tick)
        for pair in self.pairs.values():
            pair.heard += pair.narrator.take_emissions()
        return [driver.session for driver in drivers]

    def speak_out(self, until: Callable[[], bool] | None = None) -> int:
        """Run batches until nothing can run, or something is so; return how many."""
        for count in range(500):
            if (until is not None and until()) or not self.speak():
                return count
        raise AssertionError("still speaking")

    def close(self) -> None:
        for pair in self.pairs.values():
            pair.narrator.close()
            pair.world.close()
        self.pairs.clear()

    @property
    def blocks_in_use(self) -> int:
        assert self.instance.blocks is not None
        return self.instance.blocks.count - self.instance.blocks.free

    def _step_world(self, pair: Pair) -> None:
        if pair.world.ready(self.clock.now_us) is not None:
            run_batch(self.world_kernel, self.instance, [pair.world], self._tick)
        for emission in pair.world.take_emissions():
            if isinstance(emission, FramesOut):
                pair.frames.append(emission)
                pair.world.seen(emission.header.chunk, self.clock.now_us)

    def _tick(self) -> int:
        self.clock.now_us += 500
        return self.clock.now_us
