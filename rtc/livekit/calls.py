"""RPC: what a participant may call, each with one answer or one typed refusal.

A payload is a JSON object, or empty for one without fields; so is the answer. A refusal is an
`RpcError` of code `REFUSED`, whose `data` is `{"code", "message", "field", "retry_after_s"}`.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Literal, Protocol, TypeVar

from livekit import rtc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reverie.rtc.livekit import vocabulary as names
from reverie.rtc.livekit.command_gateway import CommandGateway
from reverie.rtc.livekit.errors import InputRefusedError, as_refusal, said
from reverie.rtc.wire.errors import BadMessageError
from reverie.rtc.wire.strict_json import parse_object
from reverie.sessions.protocol.commands import Count, Name, Number, Seed, Text

REFUSED = 4000
"""Code of every refusal; those below 2000 are LiveKit's own."""
MESSAGE_CHARS = 200

Tag = Annotated[str, Field(max_length=64)]


class _Call(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class NoFields(_Call):
    """An empty payload."""


class InterruptCall(_Call):
    """One loop of the program, or all."""

    loop: Name | None = None


class ActionCall(_Call):
    """Keys and axes, as `push_action` of the protocol."""

    action: dict[Name, Name | Number] = Field(min_length=1, max_length=16)
    edge: Literal["tap", "press", "release"] = "tap"
    tag: Tag | None = None


class PromptCall(_Call):
    """A prompt."""

    text: Text
    mode: Literal["replace", "append", "turn"] = "replace"
    tag: Tag | None = None


class RewindCall(_Call):
    """Back to a chunk, or by some chunks."""

    chunk: Count | None = None
    chunks: Annotated[int, Field(ge=1, le=10_000)] = 1


class ResetCall(_Call):
    """With another seed, or the same."""

    seed: Seed | None = None


class UpdateCall(_Call):
    """Parameters of the program."""

    parameters: dict[Name, Number] = Field(min_length=1, max_length=32)


class DriveCall(_Call):
    """Take the control lock, hand it `to` a participant, or `release` it."""

    to: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    release: bool = False


Answer = Mapping[str, object]
Handler = Callable[[rtc.RpcInvocationData], Awaitable[str]]
Asked = TypeVar("Asked", bound=_Call)


class RoomWorld(Protocol):
    """What calls need next to the gateway."""

    def newest_chunk(self) -> int:
        """Return the newest chunk that was shown; -1 before the first."""

    def is_here(self, identity: str) -> bool:
        """Tell whether a participant is in the room."""

    def state(self) -> Answer:
        """Return all that a front end shows."""

    def ask_rest(self, wanted: bool) -> None:
        """Pause or resume, as a participant asked."""


class Calls:
    """The handlers of all methods."""

    def __init__(self, gateway: CommandGateway, world: RoomWorld) -> None:
        self._gateway = gateway
        self._world = world

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers by method name."""
        return {
            names.RPC_INTERRUPT: self._handler(InterruptCall, self._interrupt),
            names.RPC_ACTION: self._handler(ActionCall, self._action),
            names.RPC_PROMPT: self._handler(PromptCall, self._prompt),
            names.RPC_REWIND: self._handler(RewindCall, self._rewind),
            names.RPC_RESET: self._handler(ResetCall, self._reset),
            names.RPC_UPDATE: self._handler(UpdateCall, self._update),
            names.RPC_PAUSE: self._handler(NoFields, self._pause),
            names.RPC_RESUME: self._handler(NoFields, self._resume),
            names.RPC_DRIVE: self._handler(DriveCall, self._drive),
            names.RPC_STATE: self._handler(NoFields, self._state),
        }

    async def _interrupt(self, by: str, asked: InterruptCall) -> Answer:
        command = await self._gateway.do(by, lambda session: session.interrupt(asked.loop))
        return {"command": command}

    async def _action(self, by: str, asked: ActionCall) -> Answer:
        return {"control": await self._gateway.act(by, asked.action, asked.edge, asked.tag)}

    async def _prompt(self, by: str, asked: PromptCall) -> Answer:
        return {"control": await self._gateway.say(by, asked.text, asked.mode, asked.tag)}

    async def _rewind(self, by: str, asked: RewindCall) -> Answer:
        chunk = asked.chunk
        if chunk is None:
            chunk = max(self._world.newest_chunk() - asked.chunks, 0)
        command = await self._gateway.do(by, lambda session: session.rewind(chunk))
        return {"command": command, "chunk": chunk}

    async def _reset(self, by: str, asked: ResetCall) -> Answer:
        command = await self._gateway.do(by, lambda session: session.reset(seed=asked.seed))
        return {"command": command}

    async def _update(self, by: str, asked: UpdateCall) -> Answer:
        return {"control": await self._gateway.tune(by, asked.parameters)}

    async def _pause(self, by: str, _: NoFields) -> Answer:
        self._gateway.check(by)
        self._gateway.steered(by)
        self._world.ask_rest(True)
        return {}

    async def _resume(self, by: str, _: NoFields) -> Answer:
        self._gateway.check(by)
        self._gateway.steered(by)
        self._world.ask_rest(False)
        return {}

    async def _drive(self, by: str, asked: DriveCall) -> Answer:
        if asked.to is not None and not self._world.is_here(asked.to):
            raise InputRefusedError("not_here", f"{asked.to!r} is not in the room", field="to")
        if asked.release or asked.to is not None:
            self._gateway.hand_over_control(by, asked.to)
        else:
            self._gateway.take_control(by)
        return {"driver": self._gateway.control_lock.driver}

    async def _state(self, by: str, _: NoFields) -> Answer:
        return self._world.state()

    def _handler(
        self, shape: type[Asked], answer: Callable[[str, Asked], Awaitable[Answer]]
    ) -> Handler:
        async def handle(call: rtc.RpcInvocationData) -> str:
            try:
                self._gateway.admit(call.caller_identity)
                asked = _read(shape, call.payload)
                return json.dumps(await answer(call.caller_identity, asked), ensure_ascii=False)
            except InputRefusedError as refusal:
                message = f"{refusal.code}: {refusal.message}"[:MESSAGE_CHARS]
                raise rtc.RpcError(REFUSED, message, json.dumps(said(refusal))) from None

        return handle


def _read(shape: type[Asked], payload: str) -> Asked:
    try:
        return shape.model_validate(parse_object(payload or "{}"))
    except BadMessageError as error:
        raise InputRefusedError(error.code, error.message, field=error.field) from None
    except ValidationError as error:
        raise as_refusal(error) from None
