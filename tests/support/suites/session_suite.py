"""What every `Session` must do, in this process and over the network, with the stub model.

Subclass `SessionSuite` in a test module and give it a fixture `service`:

    class TestRemoteSession(SessionSuite):
        @pytest.fixture
        async def service(self) -> AsyncIterator[Service]: ...
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pytest
from numpy.typing import NDArray
from stub_model import DEFAULTS, Fault, Stamp, prompt_mark, read_stamp, session_mark

from reverie.sessions.client.event_stream import EventStream
from reverie.sessions.client.session import Session
from reverie.sessions.protocol.errors import BadRequestError, CommandError, SessionError
from reverie.sessions.protocol.events import (
    AnyEvent,
    ControlApplied,
    ControlSuperseded,
    Error,
    SessionInterrupted,
    SessionUpdated,
)
from reverie.sessions.protocol.media_events import MediaChunk, MediaComplete, MediaInit

LIMIT_S = 20.0
"""For anything that a test waits for, on a busy machine."""

QUIET_S = 0.3
"""After which nothing more is expected of a paused session."""


class Service(Protocol):
    """Something that opens sessions of the stub model."""

    def session(
        self,
        *,
        prompt: str = "",
        seed: int | None = None,
        parameters: dict[str, float] | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        """Open a session, and end it with the block."""


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """A frame as it came, and what it says of itself."""

    event: MediaChunk
    stamp: Stamp
    picture: NDArray[np.uint8]


class StreamViewer:
    """Looks at a session: takes its stream and keeps every event."""

    def __init__(self, session: Session, stream: EventStream) -> None:
        self.session = session
        self.events: list[AnyEvent] = []
        self._stream = stream

    async def take(self) -> AnyEvent:
        async with asyncio.timeout(LIMIT_S):
            event = await anext(self._stream)
        self.events.append(event)
        return event

    async def until(self, type: str) -> AnyEvent:
        while (event := await self.take()).type != type:
            pass
        return event

    async def frame(self) -> ShownFrame:
        event = await self.until("media.chunk")
        assert isinstance(event, MediaChunk)
        picture = self.session.picture(event)
        return ShownFrame(event, read_stamp(picture), picture)

    async def chunk(self) -> list[ShownFrame]:
        """Return the frames of the next chunk; of one that was joined late, what is left."""
        frames = [await self.frame()]
        while not frames[-1].event.last:
            frames.append(await self.frame())
        assert len({frame.event.chunk for frame in frames}) == 1
        return frames

    async def quiet(self) -> None:
        """Take what comes until nothing has come for a while."""
        with contextlib.suppress(TimeoutError):
            while True:
                async with asyncio.timeout(QUIET_S):
                    self.events.append(await anext(self._stream))

    def last_chunk(self) -> int:
        """Return the number of the newest chunk that was shown."""
        return max(event.chunk for event in self.events if isinstance(event, MediaChunk))

    async def rest(self) -> list[AnyEvent]:
        """Take all there is."""
        try:
            while True:
                await self.take()
        except StopAsyncIteration:
            return self.events

    def receipt(self, control: str) -> ControlApplied | ControlSuperseded | None:
        """Return the receipt of a control, if it has come."""
        found = [
            event
            for event in self.events
            if isinstance(event, ControlApplied | ControlSuperseded) and event.control == control
        ]
        assert len(found) <= 1, "a control got two receipts"
        return found[0] if found else None

    async def applied(self, control: str) -> ControlApplied:
        """Take events until a control acts."""
        while not (found := self.receipt(control)):
            await self.take()
        assert isinstance(found, ControlApplied)
        return found

    async def frame_at(self, pts_us: int) -> ShownFrame:
        """Take events until the frame at a media time."""
        while (frame := await self.frame()).event.pts_us < pts_us:
            pass
        return frame


@asynccontextmanager
async def looking(session: Session) -> AsyncIterator[StreamViewer]:
    """Look at a session for the length of a block."""
    async with aclosing(session.stream()) as stream:
        yield StreamViewer(session, stream)


def assert_well_formed(events: list[AnyEvent]) -> None:
    """What holds for every stream, whatever happened in it."""
    sequences = [event.sequence for event in events]
    assert sequences == sorted(set(sequences)), "answers may be taken out, nothing comes twice"
    media = [event for event in events if event.type.startswith("media.")]
    chunks = [event for event in media if isinstance(event, MediaChunk)]
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.pts_us for chunk in chunks] == sorted({chunk.pts_us for chunk in chunks})
    # A viewer that was interrupted at every turn may have been shown nothing.
    assert not media or isinstance(media[0], MediaInit)
    assert not any(isinstance(event, MediaComplete) for event in media[:-1])


class SessionSuite:
    """The tests. Each opens sessions of its own."""

    # --- seeing ---

    async def test_the_world_shows_the_prompt_and_the_seed(self, service: Service) -> None:
        async with service.session(prompt="a lake", seed=7) as session, looking(session) as screen:
            frames = [frame for _ in range(3) for frame in await screen.chunk()]
            assert {frame.stamp.prompt for frame in frames} == {prompt_mark("a lake")}
            assert {frame.stamp.seed for frame in frames} == {7}
            assert {frame.stamp.session for frame in frames} == {session_mark(session.id)}
            assert [frame.stamp.chunk for frame in frames] == [0] * 12 + [1] * 12 + [2] * 12
            init = next(event for event in screen.events if isinstance(event, MediaInit))
            assert (init.seed, init.width, init.height) == (7, 64, 64)
            assert session.view.seed == 7
            assert_well_formed(screen.events)

    async def test_closing_ends_the_stream_once_and_last(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await screen.chunk()
            await session.close()
            events = await screen.rest()
            assert [event.type for event in events[-2:]] == ["media.complete", "session.closed"]
            assert_well_formed(events)
            await session.close()
            with pytest.raises(SessionError):
                await session.push_text("too late")

    async def test_looking_away_and_back_goes_on_where_it_was(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session:
            async with looking(session) as screen:
                last = (await screen.chunk())[-1].event
            for _ in range(3):
                async with looking(session) as screen:
                    frames = await screen.chunk()
                    while frames[-1].event.chunk <= last.chunk:
                        frames = await screen.chunk()
                    last = frames[-1].event
            assert last.chunk < 12

    async def test_a_new_stream_takes_the_place_of_the_one_before(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as first:
            await first.chunk()
            async with looking(session) as second:
                with pytest.raises(StopAsyncIteration):
                    await first.take()
                assert await second.chunk()

    async def test_a_stream_outlives_a_wait_that_was_cut_short(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await session.pause()
            await screen.quiet()
            await session.resume()
            stamps = [frame.stamp for _ in range(3) for frame in await screen.chunk()]
            assert len(stamps) >= 24

    async def test_two_sessions_never_show_each_other_s_frames(self, service: Service) -> None:
        async with (
            service.session(prompt="red") as red,
            service.session(prompt="blue") as blue,
            looking(red) as at_red,
            looking(blue) as at_blue,
        ):
            for _ in range(5):
                for screen, prompt in ((at_red, "red"), (at_blue, "blue")):
                    for frame in await screen.chunk():
                        assert frame.stamp.session == session_mark(screen.session.id)
                        assert frame.stamp.prompt == prompt_mark(prompt)

    async def test_a_model_that_reuses_its_buffer_tears_no_frame(self, service: Service) -> None:
        parameters = {"fault": float(Fault.REUSE_BUFFER)}
        async with (
            service.session(prompt="a lake", parameters=parameters) as session,
            looking(session) as screen,
        ):
            stamps = [frame.stamp for _ in range(10) for frame in await screen.chunk()]
            assert len({(stamp.chunk, stamp.frame) for stamp in stamps}) == 120

    # --- saying ---

    async def test_a_prompt_shows_in_the_frame_that_its_receipt_names(
        self, service: Service
    ) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await screen.chunk()
            control = await session.push_text("a city")
            receipt = await screen.applied(control)
            assert not [
                event
                for event in screen.events
                if isinstance(event, MediaChunk) and event.pts_us >= receipt.pts_us
            ]
            frame = await screen.frame_at(receipt.pts_us)
            assert frame.stamp.prompt == prompt_mark("a city")
            assert (frame.event.chunk, frame.event.pts_us) == (receipt.chunk, receipt.pts_us)

    async def test_a_client_knows_how_long_its_controls_took_to_show(
        self, service: Service
    ) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await screen.chunk()
            assert session.latency() is None
            receipt = await screen.applied(await session.push_text("a bog"))
            assert session.latency() is None
            await screen.frame_at(receipt.pts_us)
            latency = session.latency()
            assert latency is not None
            assert latency.count == 1
            assert 0 < latency.newest_ms == latency.p50_ms == latency.p95_ms < 1000 * LIMIT_S

    async def test_appended_text_is_added_to_the_prompt(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            receipt = await screen.applied(await session.push_text("at night", mode="append"))
            frame = await screen.frame_at(receipt.pts_us)
            assert frame.stamp.prompt == prompt_mark("a lake at night")
            await _view_says(screen, "a lake at night")

    async def test_an_empty_prompt_is_a_wish_for_nothing(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            receipt = await screen.applied(await session.push_text("   "))
            frame = await screen.frame_at(receipt.pts_us)
            assert frame.stamp.prompt == prompt_mark("")

    async def test_what_the_model_did_not_read_is_in_the_receipt(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            long = await screen.applied(await session.push_text(" ".join(["word"] * 40)))
            assert long.truncated_at == 32
            odd = await screen.applied(await session.push_text("a blargy lake"))
            assert (odd.unknown_words, odd.truncated_at) == (("blargy",), None)

    async def test_a_prompt_over_the_limit_names_the_limit(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            for text in ("x" * 2001, "x" * 100_000):
                with pytest.raises(CommandError) as caught:
                    await session.push_text(text)
                assert (caught.value.code, caught.value.field) == ("too_long", "text")
                assert "2000" in caught.value.message
            assert (await screen.chunk())[0].stamp.prompt == prompt_mark("a lake")

    async def test_a_burst_ends_with_its_last_word_and_every_control_has_a_fate(
        self, service: Service
    ) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await screen.chunk()
            controls = [await session.push_text(f"prompt {number}") for number in range(200)]
            await screen.applied(controls[-1])
            receipts = [screen.receipt(control) for control in controls]
            assert all(receipts)
            superseded = [each for each in receipts if isinstance(each, ControlSuperseded)]
            assert len(superseded) > 150
            assert {each.by for each in superseded} <= set(controls)
            assert (await screen.chunk())[-1].stamp.prompt == prompt_mark("prompt 199")

    # --- acting ---

    async def test_what_happens_within_one_step_is_all_seen(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await screen.chunk()
            await session.pause()
            for _ in range(4):
                await session.push_action({"move": "up"})
            last = await session.push_action({"move": "left"}, edge="press")
            await session.resume()
            receipt = await screen.applied(last)
            frame = await screen.frame_at(receipt.pts_us)
            assert frame.stamp.presses == 5
            assert (frame.stamp.acting, frame.stamp.held) == ("up", frozenset({"left"}))

    async def test_a_held_key_acts_until_it_is_released(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await screen.applied(await session.push_action({"move": "left"}, edge="press"))
            for _ in range(3):
                assert (await screen.chunk())[-1].stamp.held == {"left"}
            released = await session.push_action({"move": "left"}, edge="release")
            receipt = await screen.applied(released)
            frame = await screen.frame_at(receipt.pts_us)
            assert (frame.stamp.held, frame.stamp.acting) == (frozenset(), None)

    async def test_releasing_all_lets_every_key_go(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await session.push_action({"move": "left"}, edge="press")
            await screen.applied(await session.push_action({"move": "up"}, edge="press"))
            await session.release_all()
            await screen.chunk()
            await screen.chunk()
            assert (await screen.chunk())[-1].stamp.held == frozenset()

    @pytest.mark.parametrize(
        ("action", "field", "code"),
        [
            ({"move": "jump"}, "action.move", "unknown_key"),
            ({"move": float("nan")}, "action.move", "non_finite"),
            ({"move": True}, "action.move", "wrong_type"),
            ({"look": 7.0}, "action.look", "out_of_range"),
            ({"look": 1e300}, "action.look", "out_of_range"),
            ({"fly": "up"}, "action.fly", "unknown_control"),
            ({}, "action", "out_of_range"),
        ],
    )
    async def test_a_wrong_action_names_its_field_and_the_stream_goes_on(
        self, service: Service, action: dict[str, str | float], field: str, code: str
    ) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            with pytest.raises(CommandError) as caught:
                await session.push_action(action)
            assert (caught.value.field, caught.value.code) == (field, code)
            assert await screen.chunk()

    async def test_a_wrong_parameter_names_its_field(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session:
            for name, value, code in (
                ("brightness", 2.0, "out_of_range"),
                ("brightness", float("inf"), "non_finite"),
                ("fault", 0.5, "out_of_range"),
                ("colour", 1.0, "unknown_parameter"),
            ):
                with pytest.raises(CommandError) as caught:
                    await session.update(**{name: value})  # type: ignore[arg-type]
                assert (caught.value.field, caught.value.code) == (f"parameters.{name}", code)

    # --- going back ---

    async def test_prompt_and_reset_in_one_update_both_act(self, service: Service) -> None:
        async with service.session(prompt="a") as session, looking(session) as screen:
            for _ in range(3):
                await screen.chunk()
            control = await session.update(prompt="b", reset=True)
            word = await screen.until("session.interrupted")
            assert isinstance(word, SessionInterrupted)
            assert (word.reason, word.command) == ("reset", control)
            receipt = await screen.applied(control)
            frame = await screen.frame()
            assert (frame.stamp.chunk, frame.stamp.prompt) == (0, prompt_mark("b"))
            assert receipt.chunk == frame.event.chunk
            await screen.chunk()
            await session.reset()
            await screen.until("session.interrupted")
            frame = await screen.frame()
            assert (frame.stamp.chunk, frame.stamp.prompt) == (0, prompt_mark("b"))

    async def test_an_interrupt_goes_on_from_what_was_seen_and_shows_nothing_old(
        self, service: Service
    ) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            for _ in range(3):
                seen = (await screen.chunk())[-1]
            command = await session.interrupt()
            word = await screen.until("session.interrupted")
            assert isinstance(word, SessionInterrupted)
            assert (word.command, word.reason) == (command, "interrupt")
            assert (word.chunk, word.seen_us) == (seen.event.chunk, seen.event.pts_us)
            first = await screen.frame()
            assert first.event.discontinuity
            assert first.event.pts_us >= word.next_us > seen.event.pts_us
            assert first.stamp.chunk == seen.stamp.chunk + 1
            assert first.event.chunk > seen.event.chunk
            assert_well_formed(screen.events)

    async def test_a_rewind_goes_on_from_an_earlier_chunk(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            for _ in range(5):
                await screen.chunk()
            await session.rewind(1)
            await screen.until("session.interrupted")
            assert (await screen.frame()).stamp.chunk == 2

    async def test_a_rewind_to_what_is_not_kept_is_refused(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await screen.chunk()
            with pytest.raises(CommandError) as caught:
                await session.rewind(1000)
            assert caught.value.field == "chunk"
            assert (await screen.chunk())[0].stamp.chunk == 1

    async def test_a_snapshot_brings_its_moment_back(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await screen.chunk()
            await screen.chunk()
            await session.pause()
            await session.snapshot("here")
            await session.resume()
            for _ in range(4):
                await screen.chunk()
            await session.restore("here")
            await screen.until("session.interrupted")
            first = (await screen.frame()).stamp.chunk
            assert first <= 3
            with pytest.raises(CommandError) as caught:
                await session.restore("nowhere")
            assert caught.value.field == "name"

    async def test_a_fork_goes_on_from_what_was_seen_and_by_itself(self, service: Service) -> None:
        async with (
            service.session(prompt="a lake", seed=7) as session,
            looking(session) as screen,
        ):
            await session.update(step_ms=1)
            await session.push_text("a city")
            before = (await screen.chunk())[-1].stamp
            while before.prompt != prompt_mark("a city"):
                before = (await screen.chunk())[-1].stamp
            async with session.fork() as other, looking(other) as second:
                assert other.id != session.id
                values = {each.name: each.value for each in other.view.parameters}
                assert values["step_ms"] == 1
                after = (await second.chunk())[0].stamp
                assert (after.chunk, after.seed, after.prompt) == (
                    before.chunk + 1,
                    before.seed,
                    before.prompt,
                )
                assert after.session == session_mark(session.id)
                await other.push_text("a desert")
                while (await second.frame()).stamp.prompt != prompt_mark("a desert"):
                    pass
                await screen.chunk()
                assert (await screen.chunk())[-1].stamp.prompt == prompt_mark("a city")
                await session.close()
                await second.chunk()
            with pytest.raises(SessionError):
                async with session.fork():
                    pass

    async def test_a_fork_parts_from_an_earlier_chunk_if_it_is_asked_to(
        self, service: Service
    ) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            for _ in range(4):
                await screen.chunk()
            async with session.fork(1) as other, looking(other) as second:
                assert (await second.frame()).stamp.chunk == 2
            for _ in range(12):
                await screen.chunk()
            with pytest.raises(BadRequestError) as refused:
                async with session.fork(1):
                    pass
            assert (refused.value.code, refused.value.field) == ("chunk_not_kept", "chunk")

    async def test_there_is_no_fork_where_no_place_is_free(self, service: Service) -> None:
        async with service.session() as session, service.session(), service.session():
            with pytest.raises(SessionError, match="places"):
                async with session.fork():
                    pass
            await session.push_text("still here")

    async def test_reset_with_a_seed_begins_another_world(self, service: Service) -> None:
        async with service.session(prompt="a", seed=7) as session, looking(session) as screen:
            await screen.chunk()
            await session.reset(seed=9)
            await screen.until("session.interrupted")
            assert (await screen.frame()).stamp.seed == 9
            assert [each.seed for each in screen.events if isinstance(each, MediaInit)] == [7, 9]

    # --- pausing ---

    async def test_what_is_said_while_paused_shows_after_the_chunk_that_was_being_shown(
        self, service: Service
    ) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            last = (await screen.chunk())[-1]
            await session.pause()
            control = await session.push_text("a city")
            await session.resume()
            receipt = await screen.applied(control)
            assert receipt.chunk <= last.event.chunk + 2
            frame = await screen.frame_at(receipt.pts_us)
            assert frame.stamp.prompt == prompt_mark("a city")
            assert frame.stamp.chunk <= last.stamp.chunk + 2

    async def test_stepping_shows_so_many_chunks_and_stays_paused(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            await screen.chunk()
            await session.pause()
            await screen.quiet()
            last = screen.last_chunk()
            await session.step(2)
            assert [(await screen.chunk())[0].event.chunk - last for _ in range(2)] == [1, 2]
            await screen.quiet()
            assert screen.last_chunk() == last + 2
            assert session.view.state == "paused"

    async def test_pausing_and_resuming_again_changes_nothing(self, service: Service) -> None:
        async with service.session(prompt="a lake") as session, looking(session) as screen:
            last = (await screen.chunk())[-1]
            for command in (session.pause, session.pause, session.resume, session.resume):
                await command()
            frame = (await screen.chunk())[0]
            assert frame.stamp.chunk == last.stamp.chunk + 1
            assert frame.event.pts_us - last.event.pts_us <= 2 * last.event.duration_us
            with pytest.raises(CommandError) as caught:
                await session.step()
            assert caught.value.code == "not_paused"

    # --- failing ---

    async def test_a_step_that_fails_once_is_told_and_done_again(self, service: Service) -> None:
        parameters = {"fault": float(Fault.NAN), "fault_chunk": 2.0}
        async with (
            service.session(prompt="a lake", parameters=parameters) as session,
            looking(session) as screen,
        ):
            chunks = [(await screen.chunk())[0].stamp.chunk for _ in range(5)]
            assert chunks == [0, 1, 2, 3, 4]
            (error,) = [event for event in screen.events if isinstance(event, Error)]
            assert (error.code, error.chunk) == ("non_finite", 2)

    async def test_a_step_that_fails_always_ends_the_session_with_its_reason(
        self, service: Service
    ) -> None:
        parameters = {"fault": float(Fault.RAISE), "fault_chunk": 2.0, "fault_always": 1.0}
        async with (
            service.session(prompt="a lake", parameters=parameters) as session,
            looking(session) as screen,
        ):
            events = await screen.rest()
            assert [event.type for event in events[-2:]] == ["media.complete", "session.closed"]
            assert events[-1].type == "session.closed"
            assert events[-1].reason == "step_raised"
            assert_well_formed(events)

    # --- seeds ---

    async def test_equal_seeds_give_equal_pixels_whoever_else_runs(self, service: Service) -> None:
        alone = await _pixels(service, seed=7)
        async with service.session(prompt="b", seed=8) as other, looking(other) as screen:
            await screen.chunk()
            with_others = await _pixels(service, seed=7)
        assert np.array_equal(_world(alone), _world(with_others))

    async def test_without_a_seed_two_worlds_differ(self, service: Service) -> None:
        async with service.session(prompt="a") as one:
            first = one.view.seed
        async with service.session(prompt="a") as two:
            assert two.view.seed != first


async def _view_says(screen: StreamViewer, prompt: str) -> None:
    while not any(
        isinstance(event, SessionUpdated) and event.view.prompt == prompt for event in screen.events
    ):
        await screen.take()


async def _pixels(service: Service, seed: int) -> list[ShownFrame]:
    parameters = {**DEFAULTS}
    async with (
        service.session(prompt="a lake", seed=seed, parameters=parameters) as session,
        looking(session) as screen,
    ):
        return [frame for _ in range(3) for frame in await screen.chunk()]


def _world(frames: list[ShownFrame]) -> NDArray[np.uint8]:
    """Return the tints that the trail gives, which hold the world's whole past."""
    return np.array([np.unique(frame.picture.reshape(-1, 3), axis=0) for frame in frames])
