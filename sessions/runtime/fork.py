"""A second future for a session: what it takes over, and whether its program can part."""

from reverie.models.contract.spec import Capability, ModelSpec
from reverie.sessions.protocol.errors import BadRequestError, ErrorCode
from reverie.sessions.state.session_state import SessionState, new_session_id


def check_forks(spec: ModelSpec, program: str) -> None:
    """Refuse to fork a program of which a loop cannot.

    Raises:
        BadRequestError: names the loop.
    """
    for loop in spec.program(program).loops:
        if not spec.capabilities.has(loop, Capability.FORK):
            message = f"loop {loop} of program {program} cannot be forked"
            raise BadRequestError(ErrorCode.NOT_ENABLED, message, field="program")


def forked(state: SessionState) -> SessionState:
    """Return the state of a session that goes on from another: its wishes, and nothing it holds."""
    return SessionState(
        session=new_session_id(),
        owner=state.owner,
        model=state.model,
        program=state.program,
        seed=state.seed,
        prompt=state.prompt,
        parameters=dict(state.parameters),
        stop=state.stop,
    )
