"""What one session consists of, for those of its parts that use the others."""

from dataclasses import dataclass
from typing import Self

from reverie.media import Clock
from reverie.models.contract.spec import ModelSpec
from reverie.sessions.attachments.attached_clients import AttachedClients, OpeningReceipt
from reverie.sessions.backend.control_receipts import ControlReceipts
from reverie.sessions.backend.worker_channel import WorkerChannel
from reverie.sessions.runtime.session_views import SessionViews
from reverie.sessions.state.cancel_scopes import CancelScope, ScopeKind
from reverie.sessions.state.limits import SessionLimits
from reverie.sessions.state.program_controls import ProgramControls
from reverie.sessions.state.session_state import SessionState
from reverie.sessions.streams.input_streams import InputStreams
from reverie.sessions.streams.output_streams import OpenFanout, OutputStreams
from reverie.sessions.streams.pending_turns import PendingTurns


@dataclass(frozen=True, slots=True)
class SessionContext:
    """Made once for each session.

    Attributes:
        scope: the session's; cancelling it ends the streams.
    """

    state: SessionState
    limits: SessionLimits
    clock: Clock
    scope: CancelScope
    controls: ProgramControls
    attached: AttachedClients
    receipts: ControlReceipts
    link: WorkerChannel
    turns: PendingTurns
    opening: OpeningReceipt
    outputs: OutputStreams
    inputs: InputStreams
    views: SessionViews

    @classmethod
    def of(
        cls,
        state: SessionState,
        spec: ModelSpec,
        limits: SessionLimits,
        clock: Clock,
        open_fanout: OpenFanout,
    ) -> Self:
        """Make the parts of a session that runs a program of `spec`."""
        scope = CancelScope(ScopeKind.SESSION, state.session)
        controls = ProgramControls(spec, state.program)
        attached, receipts = AttachedClients(), ControlReceipts()
        program = scope.open(ScopeKind.PROGRAM, state.program)
        turns = PendingTurns()
        link = WorkerChannel(state.session, receipts, limits.command_s)
        return cls(
            state=state,
            limits=limits,
            clock=clock,
            scope=scope,
            controls=controls,
            attached=attached,
            receipts=receipts,
            link=link,
            turns=turns,
            opening=OpeningReceipt(receipts),
            outputs=OutputStreams(state, controls, program, attached, turns, open_fanout),
            inputs=InputStreams(state, controls, link, receipts, attached, limits),
            views=SessionViews(state, controls, attached, limits, clock),
        )
