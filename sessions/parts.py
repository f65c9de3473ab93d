"""What one session consists of, for those parts of it that act on the others."""

from dataclasses import dataclass
from typing import Self

from reverie.media import Clock
from reverie.models.spec import ModelSpec
from reverie.sessions.audience import Audience
from reverie.sessions.inputs import Inputs
from reverie.sessions.limits import SessionLimits
from reverie.sessions.loop_link import LoopLink
from reverie.sessions.opening_receipt import OpeningReceipt
from reverie.sessions.outputs import OpenFanout, Outputs
from reverie.sessions.program_controls import ProgramControls
from reverie.sessions.receipts import Receipts
from reverie.sessions.scopes import CancelScope, ScopeKind
from reverie.sessions.state import SessionState
from reverie.sessions.turns import Turns
from reverie.sessions.views import Views


@dataclass(frozen=True, slots=True)
class Parts:
    """Made once a session; who holds it may use any of them.

    Attributes:
        scope: the session's; cancelling it ends the streams.
    """

    state: SessionState
    limits: SessionLimits
    clock: Clock
    scope: CancelScope
    controls: ProgramControls
    audience: Audience
    receipts: Receipts
    link: LoopLink
    turns: Turns
    opening: OpeningReceipt
    outputs: Outputs
    inputs: Inputs
    views: Views

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
        audience, receipts = Audience(), Receipts()
        program = scope.open(ScopeKind.PROGRAM, state.program)
        turns = Turns()
        link = LoopLink(state.session, receipts, limits.command_s)
        return cls(
            state=state,
            limits=limits,
            clock=clock,
            scope=scope,
            controls=controls,
            audience=audience,
            receipts=receipts,
            link=link,
            turns=turns,
            opening=OpeningReceipt(receipts),
            outputs=Outputs(state, controls, program, audience, turns, open_fanout),
            inputs=Inputs(state, controls, link, receipts, audience, limits),
            views=Views(state, controls, audience, limits, clock),
        )
