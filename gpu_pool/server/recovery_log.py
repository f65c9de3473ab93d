"""What the pool remembers of a session, so that a new worker can take it up. Pure.

A crash must not lose what a person asked for. From the controls (`control_log.py`) and the newest
snapshots come the messages that bring the session back.
"""

from dataclasses import dataclass, replace

from reverie.engine.emissions import (
    ControlApplied,
    ControlFailed,
    ControlSuperseded,
    Emission,
    FramesOut,
    SamplesOut,
    SnapshotOut,
    TextOut,
)
from reverie.gpu_pool.server.control_log import ControlLog
from reverie.gpu_pool.server.snapshot_log import SnapshotLog
from reverie.gpu_pool.wire.messages import RequestDone, ToWorker
from reverie.gpu_pool.wire.session_messages import (
    GoBack,
    Interrupt,
    KeptSnapshot,
    OneWay,
    OpenSession,
    Pause,
    PushInputs,
    ReleaseKeys,
    Request,
    Reset,
    RestoreSnapshot,
    Resume,
    SetWatched,
    TakeSnapshot,
)
from reverie.gpu_pool.wire.start_request import StartRequest
from reverie.models.contract.loop import Durable

_SNAPSHOTS = 4


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """The messages that take a session up in a worker.

    Attributes:
        chunk: the chunk that it continues from; -1 when it begins.
        opening: to be sent first, with a number.
        following: to be sent together with it.
    """

    chunk: int
    opening: OpenSession
    following: tuple[ToWorker, ...]

    def numbered(self, request: int, alone: bool) -> tuple[ToWorker, ...]:
        """Return all messages, the opening as request number `request`."""
        return (replace(self.opening, request=request, alone=alone), *self.following)


class RecoveryLog:
    """One session, as its messages and emissions show it."""

    def __init__(self, opening: StartRequest) -> None:
        self._chunks = 0
        self._utterances: dict[str, int] = {}  # begun, of each loop of text
        self._spoken: dict[str, Durable] = {}  # the newest state of each of those
        self._opening = opening
        self._pts_us = 0
        self._seed = opening.seed
        self._controls = ControlLog(opening.prompt, opening.parameters)
        self._watched: bool | None = None
        self._paused = False
        self._timing = ""  # the first loop with media
        self._numbers: dict[str, int] = {}  # chunks of each loop with media
        self._snapshots: dict[str, list[SnapshotOut]] = {}  # of each of those
        self._named = SnapshotLog()

    @property
    def chunks(self) -> int:
        """Chunks that were put out; utterances, where there are no others."""
        return self._chunks or max(self._utterances.values(), default=0)

    @property
    def watched(self) -> bool:
        """Whether a client takes what the session puts out."""
        return bool(self._watched)

    def sent(self, message: OneWay) -> None:
        """Note what is told to the worker."""
        match message:
            case PushInputs(inputs=inputs):
                self._controls.pushed(inputs)
            case ReleaseKeys():
                self._controls.release_keys()
            case SetWatched(watched=watched):
                self._watched = watched
            case _:  # the playhead: the next worker begins from what was put out
                pass

    def check(self, asked: Request) -> None:
        """Refuse what no worker can do any more.

        Raises:
            RequestRefusedError: that snapshot was lost with a worker.
        """
        if isinstance(asked, RestoreSnapshot):
            self._named.check(asked.name)

    def opened(self, done: RequestDone) -> None:
        """Note that a worker has begun it; a fork is independent of its origin from now on."""
        self._timing = next(iter(done.state_chunks), "")
        if self._opening.origin is None:
            return
        self._numbers = {loop: chunk + 1 for loop, chunk in done.state_chunks.items()}
        self._opening = replace(self._opening, origin=None)
        self._utterances = dict(done.utterances)
        self._chunks = done.chunk + 1
        self._pts_us = done.pts_us
        self._restore(done.session, KeptSnapshot("", done.chunk, done.durables))

    def answered(self, asked: Request, done: RequestDone) -> None:
        """Note that the worker has done what it was asked."""
        match asked:
            case Pause():
                self._paused = True
            case Resume():
                self._paused = False
            case Reset(seed=seed):
                self._seed = self._seed if seed is None else seed
                self._snapshots.clear()
                self._spoken.clear()
                self._controls.drop_shown()
            case TakeSnapshot(name=name):
                leads = [each for each in done.durables if each.loop not in self._utterances]
                lasts = bool(leads) or (bool(done.durables) and not self._chunks)
                self._named.keep(name, KeptSnapshot(name, done.chunk, done.durables), lasts=lasts)
            case RestoreSnapshot(name=name) if kept := self._named.get(name):
                self._restore(done.session, kept)
                self._controls.drop_shown()
            case _ if isinstance(asked, GoBack):
                # What came after the chunk gone back to is a world that is no more.
                loop = asked.loop if isinstance(asked, Interrupt) else None
                for name, snapshots in self._snapshots.items():
                    if loop in (None, name):
                        kept_of = [each for each in snapshots if each.media_us <= done.back_us]
                        self._snapshots[name] = kept_of
                self._controls.drop_shown(since_us=done.back_us)
            case _:
                pass
        self._pts_us = max(self._pts_us, done.pts_us)

    def heard(self, emission: Emission) -> bool:
        """Note what the worker says; False when the session has heard it before."""
        match emission:
            case FramesOut():
                self._pts_us = max(self._pts_us, emission.end_us)
                self._count(emission.header.loop, emission.header.chunk)
            case SamplesOut():
                self._pts_us = max(self._pts_us, emission.pts_us + emission.duration_us)
                self._count(emission.loop, emission.chunk)
            case TextOut(loop=loop):
                self._utterances[loop] = max(self._utterances.get(loop, 0), emission.chunk + 1)
            case SnapshotOut(durable=durable) if durable.loop in self._utterances:
                self._spoken[durable.loop] = durable
            case SnapshotOut(durable=durable):
                before = self._snapshots.get(durable.loop, [])
                self._snapshots[durable.loop] = [*before, emission][-_SNAPSHOTS:]
                if self._timing in ("", durable.loop):
                    self._controls.drop_shown()
            case ControlApplied(control=control, pts_us=pts_us):
                return self._controls.applied(control, pts_us)
            case ControlSuperseded(control=control) | ControlFailed(control=control):
                return self._controls.dropped(control)
            case _:
                pass
        return True

    def recovery_plan(self) -> RecoveryPlan:
        """Return how a worker takes the session up, be it for the first time or again."""
        session = self._opening.session
        self._named.lose_what_does_not_last()
        snapshots = self._together()
        opening = OpenSession(
            request=0,
            session=session,
            program=self._opening.program,
            seed=self._seed,
            prompt=self._controls.prompt,
            parameters=dict(self._controls.parameters),
            stop=self._opening.stop,
            durables=(*(each.durable for each in snapshots), *self._spoken.values()),
            kept=self._named.all,
            chunks=self._chunks,
            pts_us=self._pts_us,
            numbers=dict(self._numbers),
            utterances=dict(self._utterances),
            origin=self._opening.origin,
        )
        messages: list[ToWorker] = []
        if self._watched is not None:
            messages.append(SetWatched(session, self._watched))
        if self._paused:
            messages.append(Pause(0, session))
        if inputs := tuple(self._controls.replayed()):
            messages.append(PushInputs(session, inputs))
        return RecoveryPlan(snapshots[0].chunk if snapshots else -1, opening, tuple(messages))

    def _together(self) -> list[SnapshotOut]:
        """Return a snapshot of each loop with media, of one media time as nearly as there is.

        The first loop's comes first; without one of it, all begin from the request.
        """
        newest = [snapshots[-1].media_us for snapshots in self._snapshots.values() if snapshots]
        timing = self._timing or next(iter(self._snapshots), "")
        if not self._snapshots.get(timing):
            return []
        first = _until(self._snapshots[timing], min(newest))
        rest = [
            _until(snapshots, first.media_us)
            for loop, snapshots in self._snapshots.items()
            if loop != timing and snapshots
        ]
        return [first, *rest]

    def _count(self, loop: str, chunk: int) -> None:
        number = max(self._numbers.get(loop, 0), chunk + 1)
        self._numbers[loop] = number
        self._chunks = max(self._chunks, number)

    def _restore(self, session: str, kept: KeptSnapshot) -> None:
        self._snapshots.clear()
        self._spoken.clear()
        for durable in kept.durables:
            if durable.loop in self._utterances:
                self._spoken[durable.loop] = durable
            else:
                self._snapshots[durable.loop] = [SnapshotOut(session, kept.chunk, durable)]


def _until(snapshots: list[SnapshotOut], media_us: int) -> SnapshotOut:
    """Return the newest that was made by a media time; the oldest when none was."""
    earlier = [each for each in snapshots if each.media_us <= media_us]
    return earlier[-1] if earlier else snapshots[0]
