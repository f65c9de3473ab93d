"""What one driver consists of, for the parts of it that act on each other."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic

from reverie.engine.capture import Capture
from reverie.engine.checkpoints import Checkpoint
from reverie.engine.emissions import FaultCode
from reverie.engine.emitter import Emitter
from reverie.engine.errors import LoopEndedError
from reverie.engine.mailbox import Mailbox
from reverie.engine.open_chunk import OpenChunk
from reverie.engine.options import DriverOptions
from reverie.engine.outputs import FrameMemory, new_memory
from reverie.engine.pacing import PlayoutLead, RunGate, TextRate
from reverie.engine.states import LoopStates
from reverie.models.contract.blocks import LoopState
from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import Durable, LoopKernel, LoopRequest, S, StepUnit, WorkPlan
from reverie.models.services.device_errors import classify

log = logging.getLogger(__name__)

PeerState = Callable[[], LoopState | None]
"""Returns the newest state of another loop of the session; None before its first frames."""


@dataclass(frozen=True, slots=True)
class PeerTimes:
    """The media time of other loops of the session.

    Attributes:
        leading: what the leading loop has put out; None for that loop itself.
        reported: what the loops whose chunks the viewers report have put out; None for one of
            them. A loop of other chunks may go as far, however many of its own are unseen:
            no viewer reports those.
        kept: how far the leading loop can go back; None where that is no matter.
    """

    leading: Callable[[], int] | None = None
    reported: Callable[[], int] | None = None
    kept: Callable[[], int] | None = None


@dataclass(slots=True)
class LoopContext(Generic[S]):
    """One loop of one session, in pieces.

    Attributes:
        peers: for each loop that this one reads, how to get its newest state.
        lead: how far it may run ahead of the viewer; None for a loop that no viewer paces.
        peer_times: how far the session's other loops have come.
        planned: the unit that `ready` named.
        frame_memory: where frames are written to.
        unit: the unit that runs.
        step: number of the next unit.
        strikes: failures since anything last closed.
        acted_us: media time at which the newest chunk ended in which a client's control acts.
        ended: it has failed for good, or was closed.
    """

    kernel: LoopKernel[S]
    instance: ModelInstance
    request: LoopRequest
    options: DriverOptions
    peers: Mapping[str, PeerState]
    emitter: Emitter
    mailbox: Mailbox
    capture: Capture
    states: LoopStates[S]
    lead: PlayoutLead | None
    peer_times: PeerTimes = field(default_factory=PeerTimes)
    pace: TextRate = field(default_factory=TextRate)
    gate: RunGate = field(default_factory=RunGate)
    open_chunk: OpenChunk = field(default_factory=OpenChunk)
    planned: WorkPlan | None = None
    unit: StepUnit[S] | None = None
    frame_memory: FrameMemory = new_memory
    step: int = 0
    strikes: int = 0
    acted_us: int = 0
    ended: bool = False

    @property
    def session(self) -> str:
        """The session that the loop belongs to."""
        return self.request.session

    @property
    def is_behind(self) -> bool:
        """Whether the loop that leads has come further."""
        leading = self.peer_times.leading
        return leading is not None and self.emitter.next_us < leading()

    def is_full(self, now_us: int) -> bool:
        """Tell whether the viewer has to see more before another chunk may become final."""
        if self.lead is None or not self.lead.full(now_us):
            return False
        reported = self.peer_times.reported
        return reported is None or self.emitter.next_us >= reported()

    @property
    def is_between_chunks(self) -> bool:
        """Whether a loop of text has no utterance under way that was begun with words."""
        return self.lead is None and not self.open_chunk.open and not self.open_chunk.frames_out

    def wanted_request(self, seed: int | None = None) -> LoopRequest:
        """Return a request for what is in effect now; None keeps the seed."""
        return replace(
            self.request,
            seed=self.request.seed if seed is None else seed,
            prompt=self.mailbox.prompt,
            parameters=dict(self.mailbox.parameters),
        )

    def require_alive(self) -> None:
        """Refuse what only a loop that has not ended can do.

        Raises:
            LoopEndedError: the loop has ended.
        """
        if self.ended:
            raise LoopEndedError("the loop has ended")

    def seeing(self, controls: Controls) -> Controls:
        """Return the controls with the states of its peers as they are now."""
        seen = {name: state for name, peer in self.peers.items() if (state := peer()) is not None}
        return replace(controls, peers=seen) if seen else controls

    # --- going back ---

    def fault(self, code: FaultCode, message: str) -> None:
        """Roll back for a step that failed; the second time in a row ends the loop."""
        self.strikes += 1
        fatal = self.strikes > 1
        self.emitter.failed(code, max(0, self.step - 1), message, fatal)
        self.roll_back()
        if fatal:
            self.end(abandon=not self.options.has_successor)

    def roll_back(self) -> None:
        """Return to the last unit that closed; what an open chunk had taken waits again."""
        reserved = self.unit.blocks if self.unit else ()
        self.unit = self.planned = None
        self.states.roll_back(reserved)
        if self.open_chunk.open:
            self.put_back_controls()
            self.open_chunk = self.open_chunk.emptied(refreshed=self.open_chunk.refreshed)

    def put_back_controls(self) -> None:
        """Let controls that have had no receipt wait again."""
        for entry in reversed(self.open_chunk.taken):
            self.mailbox.put_back(entry.taken)
        self.open_chunk.taken.clear()

    def go_to(self, checkpoint: Checkpoint[S], kept: Checkpoint[S]) -> None:
        """Continue from `checkpoint`, which is right after the chunk of `kept`."""
        assert self.unit is None, "a unit is running"
        self.put_back_controls()
        self.states.go_to(checkpoint, kept)
        self.jump(checkpoint)
        self.open_chunk = self.open_chunk.emptied()
        self.planned = None
        self.strikes = 0
        self.gate.skip()
        if self.lead is not None:
            self.lead.skip()

    def jump(self, checkpoint: Checkpoint[S]) -> None:
        """Mark the next chunk as a discontinuity; it begins under what is in effect."""
        self.emitter.jump(self.open_chunk)
        self.capture.drop()
        self.mailbox.want(checkpoint.prompt, checkpoint.parameters)

    def end(self, *, abandon: bool = True) -> None:
        """Run no further unit; what waits never acts, unless it is handed over."""
        if not self.ended:
            self.ended = True
            if abandon:
                self.put_back_controls()
                self.mailbox.abandon()

    def durable_part(self, state: S) -> Durable | None:
        """Return what of a state outlives the worker; None when that cannot be had."""
        try:
            return self.kernel.durable(state)
        except Exception as error:
            classify(error, self.instance.device)
            log.exception("session %s: its state cannot be saved", self.session)
            return None
