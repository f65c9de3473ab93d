"""What each queued command does: one at a time, in the order in which they came."""

from reverie.engine.errors import SnapshotLimitError
from reverie.engine.inputs import ControlInput, PromptInput, TurnInput
from reverie.engine.options import DEFAULT_OPTIONS
from reverie.gpu_pool.wire import session_messages as messages
from reverie.gpu_pool.wire.session_messages import Request
from reverie.sessions.attachments.attachment import Attachment, CommandRequest
from reverie.sessions.backend.control_receipts import Receipt
from reverie.sessions.protocol import commands
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.protocol.events import ArtifactCreated, ControlSuperseded
from reverie.sessions.runtime.interruption import Interruption
from reverie.sessions.runtime.session_context import SessionContext
from reverie.sessions.state.session_phases import SessionPhase, Trigger

_SNAPSHOTS = DEFAULT_OPTIONS.snapshots
_SENT_ANYHOW = (ErrorCode.WORKER_LOST, ErrorCode.TIMED_OUT)
"""Controls have been sent for all that: they act, if not at once, and their receipts follow."""


class CommandHandlers:
    """Carries out the commands that go through the session's queue."""

    def __init__(self, context: SessionContext, interruption: Interruption) -> None:
        self._state = context.state
        self._controls = context.controls
        self._receipts = context.receipts
        self._link = context.link
        self._interruption = interruption
        self._attached = context.attached
        self._views = context.views
        self._turns = context.turns
        self._pending_limit = context.limits.pending_controls
        self._turn_limit = context.limits.pending_turns

    async def carry_out(self, request: CommandRequest) -> None:
        """Do what a command says, or nothing.

        Raises:
            CommandError: it cannot be done; nothing has changed.
        """
        session = self._state.session
        match request.command:
            case commands.PushText() as command:
                await self._push_text(request.sender, command)
            case commands.PushAction() as command:
                await self._push_action(request.sender, command)
            case commands.ReleaseAll():
                self._link.release_keys()
            case commands.Update() as command:
                await self._update(request.sender, command)
            case commands.Pause():
                await self._pause()
            case commands.Resume():
                await self._resume()
            case commands.Step(count=count):
                await self._step(count)
            case commands.Snapshot(name=name):
                await self._snapshot(name)
            case commands.Interrupt(id=id, loop=loop):
                await self._interruption.interrupt(id, loop)
            case commands.Rewind(chunk=chunk) as command:
                await self._go_back(command, messages.Rewind(0, session, chunk), "chunk")
            case commands.Restore(name=name) as command:
                await self._go_back(command, messages.RestoreSnapshot(0, session, name), "name")
            case commands.Reset(id=id, seed=seed):
                await self._reset(id, seed)
            case command:
                raise AssertionError(f"{command.type} does not go through the queue")

    async def _push_text(self, sender: Attachment, command: commands.PushText) -> None:
        self._check_length("text", command.text)
        if command.mode == "turn":
            self._push_turn(sender, command)
            return
        before = self._state.prompt
        after = (
            before.appended(command.text)
            if command.mode == "append"
            else before.replaced(command.text)
        )
        self._check_room(())
        self._state.prompt = after
        await self._push(sender, command, (PromptInput(self._receipts.new_id(), after.whole),))
        self._views.changed()

    def _push_turn(self, sender: Attachment, command: commands.PushText) -> None:
        if not self._controls.takes_turns:
            message = f"program {self._state.program} does not take turns"
            raise CommandError(ErrorCode.NO_TURNS, message, field="mode")
        text = command.text.strip()
        if not text:
            raise CommandError(ErrorCode.OUT_OF_RANGE, "a turn needs text", field="text")
        if self._turns.waiting >= self._turn_limit:
            message = f"{self._turn_limit} turns wait for an answer already (pending_turns)"
            raise CommandError(ErrorCode.TOO_MANY, message, retry_after_s=1.0)
        self._check_room(())
        control = self._receipts.new_id()
        self._turns.say(control, command.id)

        def settled(receipt: Receipt) -> None:
            self._turns.settle(control)
            sender.outbox.put(receipt)

        self._link.push(command.id, (TurnInput(control, text),), settled)

    async def _push_action(self, sender: Attachment, command: commands.PushAction) -> None:
        inputs = self._controls.action_inputs(command, self._receipts.new_id)
        if command.edge != "release":
            self._check_room(inputs)
        elif not self._has_room(inputs):
            # A release is never refused for lack of room: it becomes the release of all keys.
            self._link.release_keys()
            sender.outbox.put(ControlSuperseded(control=command.id, by=None))
            return
        await self._push(sender, command, inputs)

    async def _update(self, sender: Attachment, command: commands.Update) -> None:
        new_id = self._receipts.new_id
        inputs: tuple[ControlInput, ...] = self._controls.parameter_inputs(
            command.parameters, new_id
        )
        if command.prompt is not None:
            self._check_length("prompt", command.prompt)
        self._check_room(inputs)
        if command.prompt is not None:
            self._state.prompt = self._state.prompt.replaced(command.prompt)
            inputs = (*inputs, PromptInput(new_id(), self._state.prompt.whole))
        self._state.parameters.update(command.parameters)
        await self._push(sender, command, inputs)
        if command.reset:
            await self._reset(command.id, None)
        self._views.changed()

    async def _pause(self) -> None:
        if self._state.paused:
            return
        await self._link.ask(messages.Pause(0, self._state.session))
        self._state.paused = True
        self._move(Trigger.PAUSE)

    async def _resume(self) -> None:
        if not self._state.paused:
            return
        await self._link.ask(messages.Resume(0, self._state.session))
        self._state.paused = False
        self._move(Trigger.RESUME)

    async def _step(self, count: int) -> None:
        if not self._state.paused:
            raise CommandError(ErrorCode.NOT_PAUSED, "only a paused session can be stepped")
        await self._link.ask(messages.Advance(0, self._state.session, count))

    async def _snapshot(self, name: str) -> None:
        # Checked here, so that a flood of refusals does not wait for the loop, one by one.
        if name not in self._state.artifacts and len(self._state.artifacts) >= _SNAPSHOTS:
            message = f"a session keeps at most {_SNAPSHOTS} snapshots; reuse one of their names"
            raise CommandError(SnapshotLimitError.code, message, field="name")
        done = await self._link.ask(messages.TakeSnapshot(0, self._state.session, name))
        self._state.artifacts[name] = done.chunk
        self._attached.tell(ArtifactCreated(kind="snapshot", name=name, chunk=done.chunk))

    async def _reset(self, command: str, seed: int | None) -> None:
        await self._interruption.cut(command, "reset", messages.Reset(0, self._state.session, seed))
        if seed is not None:
            self._state.seed = seed
            self._views.changed()

    async def _go_back(
        self, command: commands.Rewind | commands.Restore, message: Request, field: str
    ) -> None:
        try:
            await self._interruption.cut(command.id, command.type, message)
        except CommandError as error:
            raise CommandError(
                error.code, error.message, field=field, retry_after_s=error.retry_after_s
            ) from None

    async def _push(
        self,
        sender: Attachment,
        command: commands.PushText | commands.PushAction | commands.Update,
        inputs: tuple[ControlInput, ...],
    ) -> None:
        def tell(receipt: Receipt) -> None:
            sender.outbox.put(receipt)
            self._attached.overheard(receipt)

        if command.act == "after" or not inputs or not self._link.is_connected:
            self._link.push(command.id, inputs, tell)
            return
        self._link.expect(command.id, inputs, tell)
        try:
            await self._interruption.act_now(command.id, inputs, sender.round_trip.line)
        except CommandError as error:
            if error.code not in _SENT_ANYHOW:
                raise

    def _move(self, trigger: Trigger) -> None:
        if self._state.phase is not SessionPhase.DETACHED:  # on attaching, `paused` tells
            self._state.move(trigger)
        self._views.changed()

    def _check_length(self, field: str, text: str) -> None:
        limit = self._state.prompt.limit_chars
        if len(text.strip()) > limit:
            message = f"a prompt has at most {limit} characters (prompt_chars), not {len(text)}"
            raise CommandError(ErrorCode.TOO_LONG, message, field=field)

    def _has_room(self, inputs: tuple[ControlInput, ...]) -> bool:
        return len(self._receipts) + len(inputs) < self._pending_limit

    def _check_room(self, inputs: tuple[ControlInput, ...]) -> None:
        if not self._has_room(inputs):
            message = (
                f"{self._pending_limit} controls wait for a receipt already (pending_controls)"
            )
            raise CommandError(ErrorCode.TOO_MANY, message, retry_after_s=1.0)
