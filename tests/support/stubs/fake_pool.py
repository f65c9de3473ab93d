"""A pool whose loops do nothing by themselves: a test says when a chunk comes, and what fails."""

import asyncio
from collections.abc import Callable, Mapping

import numpy as np

from reverie.engine.emissions import (
    ControlApplied,
    FaultCode,
    FramesHeader,
    FramesOut,
    StepFailed,
    TextOut,
)
from reverie.engine.inputs import ControlId
from reverie.gpu_pool.wire.errors import PoolFullError, RequestRefusedError
from reverie.gpu_pool.wire.messages import RequestDone
from reverie.gpu_pool.wire.notifications import Notification, Sink
from reverie.gpu_pool.wire.session_messages import (
    ActNow,
    Interrupt,
    OneWay,
    PushInputs,
    Request,
    Rewind,
)
from reverie.gpu_pool.wire.start_request import StartRequest
from reverie.models.contract.controls import ControlSpec, Merge, ParameterSpec
from reverie.models.contract.spec import (
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

FRAMES = 4
RATE_HZ = 20.0
FRAME_US = 50_000
SIZE = 16


def fake_spec() -> ModelSpec:
    """Return a model with a video stream, keys, an axis, a real and a whole parameter.

    In its program `talk` a second loop puts words out and takes turns.
    """
    loop = LoopSpec(
        name="world_model",
        components=("fake",),
        streams=(StreamSpec("video", StreamKind.VIDEO, SIZE, SIZE, RATE_HZ),),
        controls=(
            ControlSpec("move", Merge.EDGES, ("left", "right", "up", "down")),
            ControlSpec("look", Merge.SUM, low=-2.0, high=2.0),
        ),
        parameters=(
            ParameterSpec("speed", 1.0, 0.0, 10.0),
            ParameterSpec("count", 2.0, 0.0, 8.0, integer=True),
        ),
        chunk_frames=FRAMES,
        prompt_tokens=32,
    )
    words = StreamSpec("narration", StreamKind.TEXT)
    talk = LoopSpec("ar_decode", ("fake",), (words,), reads=("world_model",), takes_turns=True)
    return ModelSpec(
        name="fake",
        title="A model that does as it is told",
        licence="Apache-2.0",
        components=(ComponentSpec("fake", "everything"),),
        loops=(loop, talk),
        programs=(
            ProgramSpec("world", ("world_model",)),
            ProgramSpec("talk", ("world_model", "ar_decode"), parameters={"speed": 3.0}),
        ),
        capabilities=CapabilityMatrix(
            {"world_model": frozenset({Capability.ACTIONS, Capability.TEXT_PROMPT})}
        ),
    )


class FakeLease:
    """One loop. `sent` and `asked` hold what the session said, oldest first.

    Attributes:
        answering: cleared, the loop acts on no request until it is set again.
        delivering: cleared, the loop has acted, but its answers are still on their way.
        refusals: the next requests are refused with these codes, one each.
    """

    def __init__(
        self, opening: StartRequest, sink: Sink, gone: Callable[["FakeLease"], None]
    ) -> None:
        self.opening = opening
        self.sink = sink
        self.sent: list[OneWay] = []
        self.asked: list[Request] = []
        self.answering = asyncio.Event()
        self.answering.set()
        self.delivering = asyncio.Event()
        self.delivering.set()
        self.refusals: list[str] = []
        self.released = False
        self.chunk = -1
        self.utterance = 0
        self.pts_us = 0
        self._speaking = False
        self._gone = gone
        self._discontinuity = False

    @property
    def session(self) -> str:
        return self.opening.session

    def send(self, message: OneWay) -> None:
        self.sent.append(message)

    async def ask(self, message: Request) -> RequestDone:
        self.asked.append(message)
        await self.answering.wait()
        done = self._act(message)
        await self.delivering.wait()
        await asyncio.sleep(0)
        if done is None:
            raise RequestRefusedError(self.refusals.pop(0), "as the test said")
        return done

    def _act(self, message: Request) -> RequestDone | None:
        if self.refusals:
            return None
        back = self.chunk
        if isinstance(message, Interrupt):
            back = -1 if message.seen is None else message.seen
        if isinstance(message, ActNow):
            self.sent.append(PushInputs(message.session, message.inputs))
            back = -1 if message.seen is None else message.seen
            if back == self.chunk:
                return RequestDone(0, self.session, back, self.pts_us)
        if isinstance(message, Rewind):
            back = message.chunk
        self._discontinuity = True
        self.utterance += self._speaking
        self._speaking = False
        utterances, state_chunks = {"ar_decode": self.utterance}, {"world_model": back}
        took_back = isinstance(message, ActNow)
        return RequestDone(
            0, self.session, back, self.pts_us, (), utterances, state_chunks, took_back=took_back
        )

    async def release(self) -> None:
        if not self.released:
            self.released = True
            self._gone(self)

    def say(self, notice: Notification) -> None:
        """Let the session hear a notice, as long as it holds the lease."""
        if not self.released:
            self.sink(notice)

    def put_out_chunk(self, frames: int = FRAMES) -> int:
        """Put out the next chunk, each frame filled with its number, and return its number.

        All controls that wait act in it.
        """
        self.chunk += 1
        for control in self.waiting_controls():
            self.say(ControlApplied(self.session, control, self.chunk, self.chunk, self.pts_us))
        pictures = np.full((frames, SIZE, SIZE, 3), self.chunk % 256, np.uint8)
        header = FramesHeader(
            session=self.session,
            stream="video",
            chunk=self.chunk,
            step=self.chunk,
            pts_us=self.pts_us,
            duration_us=FRAME_US,
            discontinuity=self._discontinuity,
        )
        self.say(FramesOut(header, pictures))
        self._discontinuity = False
        self.pts_us += frames * FRAME_US
        return self.chunk

    def speak(self, text: str, *, final: bool = False, answers: ControlId | None = None) -> None:
        """Put out more text of the utterance under way; with `final`, the next one begins."""
        self.say(
            TextOut(
                session=self.session,
                stream="narration",
                chunk=self.utterance,
                step=0,
                text=text,
                pts_us=self.pts_us,
                final=final,
                answers=answers,
                loop="ar_decode",
            )
        )
        self.utterance += final
        self._speaking = not final

    def waiting_controls(self) -> list[ControlId]:
        """Take the ids of all controls that have not acted yet."""
        found = [each for each in self.sent if isinstance(each, PushInputs)]
        self.sent = [each for each in self.sent if not isinstance(each, PushInputs)]
        return [item.control for message in found for item in message.inputs]

    def fail_step(self, *, fatal: bool, loop: str = "world_model", restarted: bool = False) -> None:
        """Let a step be rolled back."""
        code, chunk = FaultCode.NON_FINITE, self.chunk + 1
        self.say(StepFailed(self.session, code, chunk, 0, "NaN in latents", fatal, loop, restarted))


class FakePool:
    """Places for `slots` sessions and a line for `line` more."""

    def __init__(self, slots: int = 2, line: int = 2) -> None:
        self.leases: list[FakeLease] = []
        self.opened = 0
        self._slots = slots
        self._line = line
        self._waiting: list[tuple[asyncio.Event, Callable[[int], None]]] = []

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        return {"fake": fake_spec()}

    @property
    def free(self) -> int:
        """How many places are free."""
        return self._slots - len(self.leases)

    def of(self, session: str) -> FakeLease:
        """Return the lease of a session."""
        return next(lease for lease in self.leases if lease.session == session)

    def expected_position(self, model: str, accounts: tuple[str, ...]) -> int:
        if self.free:
            return 0
        if len(self._waiting) >= self._line:
            raise PoolFullError("every slot is taken", 7.0, self._line)
        return len(self._waiting) + 1

    async def lease(
        self, opening: StartRequest, sink: Sink, on_position: Callable[[int], None]
    ) -> FakeLease:
        while not self.free:
            await self._wait(on_position)
        lease = FakeLease(opening, sink, self._gone)
        self.leases.append(lease)
        self.opened += 1
        return lease

    async def _wait(self, on_position: Callable[[int], None]) -> None:
        if len(self._waiting) >= self._line:
            raise PoolFullError("every slot is taken", 7.0, self._line)
        place = (asyncio.Event(), on_position)
        self._waiting.append(place)
        on_position(len(self._waiting))
        try:
            await place[0].wait()
        finally:
            self._waiting.remove(place)

    def _gone(self, lease: FakeLease) -> None:
        self.leases.remove(lease)
        if self._waiting:
            self._waiting[0][0].set()
