"""The hard cases, in this process and over the network: what each test holds is in CASES.md.

Subclass `CaseSuite` in a test module and give it a fixture `open_service`:

    class TestCasesOverASocket(CaseSuite):
        @pytest.fixture
        def open_service(self) -> OpenService:
            return remote_cases
"""

import asyncio
import random
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from case_rig import (
    CaseService,
    OpenService,
    assert_nothing_twice,
    assert_one_step_at_a_time,
    chunks,
    steps,
    well,
)
from odd_models import place
from session_suite import ShownFrame, StreamViewer, assert_well_formed, looking
from stub_model import LOG_VARIABLE, Fault, LogLine, prompt_mark, session_mark
from waiting import until

from reverie.media import (
    Codec,
    EncodedFrame,
    Picture,
    Size,
    VideoEncoder,
    VideoFanout,
    open_encoder,
)
from reverie.sessions.client.session import Session
from reverie.sessions.protocol.errors import (
    BadRequestError,
    CommandError,
    SessionEndedError,
    SessionError,
)
from reverie.sessions.protocol.events import (
    ControlApplied,
    ControlSuperseded,
    Error,
    SessionClosed,
    SessionInterrupted,
)
from reverie.sessions.protocol.media_events import MediaChunk, MediaComplete, MediaInit
from reverie.sessions.state.limits import SessionLimits

CHUNK = 12
"""Frames of a chunk of the stub."""


class CaseSuite:
    """The tests. Each opens a service of its own."""

    @pytest.fixture(autouse=True)
    def log(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        path = tmp_path / "steps"
        monkeypatch.setenv(LOG_VARIABLE, str(path))
        return path

    async def test_c04_a_place_is_not_given_again_while_its_step_computes(
        self, open_service: OpenService, log: Path
    ) -> None:
        async with open_service(sessions=1) as service, well(service, log):
            begun = {line.session for line in steps(log)}
            for _ in range(20):
                attached = asyncio.Event()
                task = asyncio.create_task(_play(service, attached, step_ms=150))
                await attached.wait()
                await until(lambda: _newest(log).session not in begun)
                await until(lambda: _newest(log).event == "start")
                session, lines = _newest(log).session, len(steps(log))
                begun.add(session)
                task.cancel()
                async with service.session(prompt="next") as other, looking(other) as screen:
                    await screen.frame()
                late = [line for line in steps(log)[lines:] if line.session == session]
                assert sum(line.event == "start" for line in late) <= 2
                await asyncio.wait((task,))
                begun.add(other.id)
            assert_one_step_at_a_time(steps(log))

    @pytest.mark.parametrize("then", ["continues", "interrupts"])
    async def test_c05_cut_in_mid_step_and_back_at_once(
        self, open_service: OpenService, log: Path, then: str
    ) -> None:
        async with open_service() as service, well(service, log):
            async with service.session(parameters={"step_ms": 30.0}) as session:
                async with looking(session) as screen:
                    before = await chunks(screen, 2)
                    await session.update()  # tells that both were seen
                    await until(lambda: _has(log, session.id, 2, 0, "end"))
                async with service.broken(session) as back, looking(back) as screen:
                    if then == "interrupts":
                        await back.interrupt()
                        word = await screen.until("session.interrupted")
                        assert isinstance(word, SessionInterrupted)
                        await _next_is_from(screen, word)
                    else:
                        after = await chunks(screen, 3)
                        worlds = list(dict.fromkeys(f.stamp.chunk for f in [*before, *after]))
                        assert worlds == list(range(len(worlds))), "a chunk was lost or came twice"
            if then == "continues":
                assert_nothing_twice(steps(log, session.id))

    async def test_c06_a_tap_and_clicks_within_one_running_step_all_count(
        self, open_service: OpenService, log: Path
    ) -> None:
        async with (
            open_service() as service,
            service.session(parameters={"step_ms": 100.0}) as session,
            looking(session) as screen,
        ):
            await _after_a_step_took_its_controls(screen, log)
            first = await session.push_action({"move": "up"}, edge="press")
            await session.push_action({"move": "up"}, edge="release")
            last = await session.push_action({"move": "left"}, edge="press")
            receipts = [await screen.applied(control) for control in (first, last)]
            assert receipts[0].chunk == receipts[1].chunk
            stamp = (await screen.frame_at(receipts[0].pts_us)).stamp
            assert (stamp.acting, stamp.presses) == ("up", 2)
            assert stamp.held == {"left"}
            assert (await screen.chunk())[-1].event.chunk == receipts[0].chunk
            assert (await screen.chunk())[0].stamp.acting == "left"
            await _after_a_step_took_its_controls(screen, log)
            clicks = [await session.push_action({"move": "up"}) for _ in range(5)]
            receipt = await screen.applied(clicks[-1])
            assert (await screen.frame_at(receipt.pts_us)).stamp.presses == 5

    @pytest.mark.parametrize("after", ["a flood", "a cut"])
    async def test_c07_no_key_stays_held(
        self, open_service: OpenService, log: Path, after: str
    ) -> None:
        async with (
            open_service() as service,
            service.session(parameters={"step_ms": 2.0}) as session,
        ):
            async with looking(session) as screen:
                press = await session.push_action({"move": "up"}, edge="press")
                held = await screen.frame_at((await screen.applied(press)).pts_us)
                assert held.stamp.held == {"up"}
                if after == "a flood":
                    for _ in range(1000):
                        await session.push_action({"move": "left"})
                    last = screen.last_chunk()
                    release = await session.push_action({"move": "up"}, edge="release")
                    receipt = await screen.applied(release)
                    assert receipt.chunk <= last + 2
                    assert (await screen.frame_at(receipt.pts_us)).stamp.held == frozenset()
                    await screen.chunk()
                    assert (await screen.chunk())[0].stamp.acting is None
                    return
                await screen.chunk()
            last = screen.last_chunk()
            async with service.broken(session) as back, looking(back) as screen:
                frames = await chunks(screen, 5)
            late = [frame for frame in frames if frame.event.chunk > last + 2]
            assert late
            assert {(frame.stamp.held, frame.stamp.acting) for frame in late} == {
                (frozenset(), None)
            }

    async def test_c11_who_takes_nothing_holds_up_only_their_own_world(
        self, open_service: OpenService, log: Path
    ) -> None:
        async with (
            open_service() as service,
            well(service, log),
            service.session(prompt="slow") as slow,
            service.session(prompt="quick") as quick,
            looking(slow) as at_slow,
            looking(quick) as at_quick,
        ):
            frames = await chunks(at_slow, 1)
            await chunks(at_quick, 30)
            made = {line.chunk for line in steps(log, slow.id, "start")}
            assert max(made) <= 2, "more was made than the lead allows"
            frames += await chunks(at_slow, 5)
            assert [f.stamp.chunk for f in frames] == [n // CHUNK for n in range(6 * CHUNK)]
            assert not any(frame.event.dropped for frame in frames)

    async def test_c12_places_come_back_whatever_way_sessions_end(
        self, open_service: OpenService, log: Path
    ) -> None:
        async def leave(session: Session) -> None:
            async with looking(session) as screen:
                await screen.frame()

        async def raise_within(session: Session) -> None:
            await leave(session)
            raise ZeroDivisionError

        async def leave_before_the_first_chunk(session: Session) -> None:
            pass

        async def leave_in_mid_step(session: Session) -> None:
            async with looking(session):
                # Its neighbour may write the newest line, and this one then waits to be seen.
                await until(lambda: any(line.session == session.id for line in steps(log)))

        async def cut(session: Session) -> None:
            await leave(session)
            async with service.broken(session):
                pass

        async def be_cancelled(session: Session) -> None:
            await leave(session)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

        async def fail(session: Session) -> None:
            async with looking(session) as screen:
                assert (await screen.rest())[-1].type == "session.closed"

        ways = (
            leave,
            raise_within,
            leave_before_the_first_chunk,
            leave_in_mid_step,
            cut,
            be_cancelled,
            fail,
        )

        async def go(number: int) -> None:
            way = ways[number % len(ways)]
            broken = {"fault": Fault.RAISE, "fault_always": 1.0, "fault_chunk": 2.0}
            parameters = {"step_ms": 5.0, **(broken if way is fail else {})}
            async with service.session(parameters=parameters) as session:
                await way(session)

        async with open_service(sessions=2, waiting_line=0) as service, well(service, log):
            for number in range(0, 2 * len(ways), 2):
                tasks = [asyncio.create_task(go(number + each)) for each in range(2)]
                await asyncio.wait(tasks)
                errors = [task.exception() for task in tasks if not task.cancelled()]
                for error in errors:
                    assert error is None or isinstance(error, ZeroDivisionError), repr(error)

    async def test_c13_an_interrupt_drops_what_is_queued_ahead(
        self, open_service: OpenService, log: Path
    ) -> None:
        async with (
            open_service(family=place("far_ahead_family")) as service,
            service.session() as session,
            looking(session) as screen,
        ):
            await screen.chunk()
            await session.update()  # tells that it was seen
            await until(lambda: _has(log, session.id, 3, 2, "end"))  # 36 frames are ahead
            for number in range(50):
                await session.push_text(f"prompt {number}")
            await session.interrupt()
            old = len([event for event in screen.events if isinstance(event, MediaChunk)])
            word = await screen.until("session.interrupted")
            assert isinstance(word, SessionInterrupted)
            shown = [event for event in screen.events if isinstance(event, MediaChunk)]
            assert len(shown) == old, "an old frame came after the answer"
            assert (word.chunk, word.seen_us) == (0, shown[CHUNK - 1].pts_us)
            await _next_is_from(screen, word)
            await screen.chunk()
            await session.close()
            events = await screen.rest()
            complete = next(event for event in events if isinstance(event, MediaComplete))
            assert complete.chunks == sum(isinstance(event, MediaChunk) for event in events)
            assert_well_formed(events)

    async def test_c15_who_does_nothing_is_ended_and_who_watches_is_not(
        self, open_service: OpenService, log: Path
    ) -> None:
        limits = SessionLimits(idle_s=1.5, grace_s=0.2)
        async with (
            open_service(limits=limits, sessions=2) as service,
            service.session() as idle,
            service.session(parameters={"step_ms": 5.0}) as watched,
            looking(watched) as screen,
        ):
            end_s = asyncio.get_running_loop().time() + 3.0
            while asyncio.get_running_loop().time() < end_s:
                await screen.frame()
            if service.ends_who_is_idle:
                with pytest.raises(SessionEndedError) as caught:
                    await idle.push_text("too late")
                assert caught.value.reason == "idle"
            else:  # its place is held by a block of this very program, which ends it
                await idle.close()
            await until(lambda: len(service.store) == service.pool.status["stub"].busy == 1)
            assert await screen.chunk()

    async def test_c16_asked_to_leave_it_tells_everybody_and_lets_nobody_in(
        self, open_service: OpenService, log: Path
    ) -> None:
        async with (
            open_service(sessions=3) as service,
            service.session(parameters={"step_ms": 100.0}) as running,
            service.session() as paused,
            service.session() as silent,
            looking(running) as at_running,
            looking(paused) as at_paused,
        ):
            await at_running.frame()
            await at_paused.frame()
            await paused.pause()
            draining = asyncio.create_task(service.drain())
            await asyncio.sleep(0)
            with pytest.raises(SessionError):
                async with service.session():
                    pass
            for screen in (at_running, at_paused):
                events = await screen.rest()
                complete, closed = events[-2:]
                assert isinstance(complete, MediaComplete)
                assert isinstance(closed, SessionClosed)
                assert (complete.reason, closed.reason) == ("shutdown", "shutdown")
            await draining
            with pytest.raises(SessionError):
                await silent.push_text("too late")

    async def test_c17_odd_numbers_name_their_field_and_the_stream_goes_on(
        self, open_service: OpenService, log: Path
    ) -> None:
        odd: list[Any] = [float("nan"), float("inf"), -1, 1.5, True, "512", 2**63, 10**5000]
        async with (
            open_service() as service,
            service.session(prompt="before") as session,
            looking(session) as screen,
        ):
            await screen.chunk()
            for value in [*odd, None]:
                await _refused(session.step(value), "count")
                await _refused(session.rewind(value), "chunk")
                if value != 1.5 or isinstance(value, bool):
                    await _refused(session.update(step_ms=value), "parameters.step_ms")
            await _refused(session.step(0), "count")
            for value in odd:
                await _refused(session.reset(seed=value), "seed")
            for text in (None, ["a"], 5, "half \ud83d"):
                await _refused(session.push_text(text), "text")  # type: ignore[arg-type]
            frames = await chunks(screen, 2)
            assert frames[-1].stamp.prompt == prompt_mark("before")

            for value in odd:
                await _not_opened(service, "seed", seed=value)
                if value != 1.5 or isinstance(value, bool):
                    named = {"step_ms": value}
                    await _not_opened(service, "parameters.step_ms", parameters=named)
            for text in (None, ["a"], 5, "half \ud83d", "x" * 2001):
                await _not_opened(service, "prompt", prompt=text)
            assert len(service.store) == 1

    async def test_c19_no_frame_is_torn_while_the_encoder_is_slow(
        self, open_service: OpenService, log: Path
    ) -> None:
        parameters = {"fault": float(Fault.REUSE_BUFFER), "step_ms": 1.0}
        async with open_service(family=place("far_ahead_family")) as service:
            service.store._open_fanout = _slow_fanout
            async with (
                service.session(parameters=parameters) as session,
                looking(session) as screen,
            ):
                frames = await chunks(screen, 30)
        stamps = [(frame.stamp.chunk, frame.stamp.frame) for frame in frames]
        assert len(set(stamps)) == len(stamps), "a frame came twice"
        assert all(frame.stamp.frame == frame.event.frame for frame in frames)
        assert len(frames) + sum(frame.event.dropped for frame in frames) == 30 * CHUNK

    async def test_c20_streams_are_in_order_and_end_once_whatever_happens(
        self, open_service: OpenService, log: Path
    ) -> None:
        dice = random.Random(20)

        async def watch(service: CaseService, way: str) -> None:
            fault = {"fault": Fault.RAISE, "fault_always": 1, "fault_chunk": 20}
            wanted = {"parameters": fault} if way == "fails" else {}
            async with service.session(**wanted) as session, looking(session) as screen:
                for _ in range(20):
                    await screen.chunk()
                    await asyncio.sleep(dice.random() * 0.02 if dice.random() < 0.5 else 0)
                    if way == "interrupts" and dice.random() < 0.3:
                        await session.interrupt()
                if way != "fails":
                    await session.close()
                events = await screen.rest()
            assert_well_formed(events)
            types = [event.type for event in events]
            assert Counter(types)["media.complete"] == Counter(types)["session.closed"] == 1
            assert types[-2:] == ["media.complete", "session.closed"]

        async with open_service(sessions=4) as service, asyncio.TaskGroup() as tasks:
            for way in ("closes", "interrupts", "interrupts", "fails"):
                tasks.create_task(watch(service, way))

    async def test_c23_an_abort_touches_no_later_session(
        self, open_service: OpenService, log: Path
    ) -> None:
        async with open_service(sessions=1) as service, well(service, log):
            alone = await _world(service)
            async with service.session() as holder:
                queued = asyncio.create_task(_play(service))
                await until(lambda: service.pool.status["stub"].waiting == 1)
                queued.cancel()
                await asyncio.wait((queued,))
                await holder.close()
            assert await _world(service) == alone, "queued"
            task = asyncio.create_task(_play(service, step_ms=30))
            await until(lambda: _newest(log).event == "start")
            task.cancel()
            assert await _world(service) == alone, "mid-step"
            await asyncio.wait((task,))
            async with service.session() as session, looking(session) as screen:
                await screen.frame()
                await asyncio.gather(session.close(), session.close())
            assert await _world(service) == alone, "twice"
            await session.close()
            assert await _world(service) == alone, "after its end"

    async def test_c25_two_clients_never_get_each_others_pictures(
        self, open_service: OpenService, log: Path
    ) -> None:
        dice = random.Random(25)

        async def watch(service: CaseService, prompt: str) -> None:
            async with service.session(prompt=prompt) as session, looking(session) as screen:
                for _ in range(50):
                    stamps = {(f.stamp.session, f.stamp.prompt) for f in await screen.chunk()}
                    assert stamps == {(session_mark(session.id), prompt_mark(prompt))}
                    if dice.random() < 0.2:
                        await session.pause()
                        await asyncio.sleep(dice.random() * 0.02)
                        await session.resume()

        async with open_service() as service, asyncio.TaskGroup() as tasks:
            for prompt in ("red", "blue"):
                tasks.create_task(watch(service, prompt))

    @pytest.mark.timeout(150)
    async def test_c27_a_model_that_holds_its_interpreter_holds_up_nobody_else(
        self, open_service: OpenService, log: Path
    ) -> None:
        async with open_service(mode="process", family=place("busy_family")) as service:
            at_rest_s = await _lateness_s(1.0)  # what the machine's other work makes of it
            async with (
                service.session(parameters={"step_ms": 300.0}) as one,
                service.session(parameters={"step_ms": 1.0}) as other,
                looking(one) as at_one,
                looking(other) as at_other,
                asyncio.TaskGroup() as tasks,
            ):
                late = tasks.create_task(_lateness_s(2.0))
                playing = [
                    tasks.create_task(at_one.chunk()),
                    tasks.create_task(chunks(at_other, 3)),
                ]
            assert late.result() < max(0.15, 2 * at_rest_s)
            assert all(task.result() for task in playing)

    async def test_c28_one_client_comes_back_twenty_times(
        self, open_service: OpenService, log: Path
    ) -> None:
        dice = random.Random(28)
        async with open_service() as service, well(service, log):
            async with service.session(parameters={"step_ms": 2.0}) as session:
                for _ in range(20):
                    async with service.broken(session) as back, looking(back) as screen:
                        await screen.until("media.init")
                        frame = await screen.frame()
                        assert frame.event.key
                        if dice.random() < 0.7:
                            await screen.chunk()
                assert service.pool.status["stub"].busy == 1
            assert_nothing_twice(steps(log, session.id))

    async def test_c28_of_two_at_the_same_moment_one_is_told_that_it_was_replaced(
        self, open_service: OpenService, log: Path
    ) -> None:
        async def play(service: CaseService, session: Session) -> str:
            async with service.another(session) as back, looking(back) as screen:
                events = [await screen.take()]
                with_error = (Error, SessionClosed)
                while not isinstance(events[-1], with_error) and len(screen.events) < 60:
                    events.append(await screen.take())
                last = events[-1]
                return last.code if isinstance(last, Error) else "played"

        async with open_service() as service, service.session() as session:
            async with asyncio.TaskGroup() as tasks:
                racing = [tasks.create_task(play(service, session)) for _ in range(2)]
            assert sorted(task.result() for task in racing) == ["played", "replaced"]

    async def test_c29_ten_times_the_position_table_with_prompt_switches(
        self, open_service: OpenService, log: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(LOG_VARIABLE)
        async with (
            open_service(family=place("short_family")) as service,
            service.session() as session,
            looking(session) as screen,
        ):
            for switch in range(10):
                control = await session.push_text(f"prompt {switch}")
                frames = await chunks(screen, 32)
                assert frames[-1].stamp.prompt == prompt_mark(f"prompt {switch}")
                assert isinstance(screen.receipt(control), ControlApplied)
                assert not [event for event in screen.events if isinstance(event, Error)]
                shown = [event.chunk for event in screen.events if isinstance(event, MediaChunk)]
                assert shown[-1] == 32 * (switch + 1) - 1

    async def test_c31_a_seed_makes_one_world_whoever_else_runs_and_whatever_is_done(
        self, open_service: OpenService, log: Path
    ) -> None:
        async with open_service(sessions=4) as service:
            alone = await _world(service)

            async def visit() -> None:
                for number in range(4):
                    async with (
                        service.session(prompt="b", seed=number) as other,
                        looking(other) as screen,
                    ):
                        await screen.chunk()

            async with asyncio.TaskGroup() as tasks:
                for _ in range(3):
                    tasks.create_task(visit())
                assert await _world(service) == alone, "next to others"
            assert await _world(service, pauses=True) == alone, "with pauses"
            unseeded = [await _world(service, seed=None) for _ in range(2)]
            assert unseeded[0] != unseeded[1]
        async with open_service() as service:
            assert await _world(service) == alone, "after a restart"

    @pytest.mark.timeout(150)
    async def test_c31_a_lost_worker_changes_nothing_of_a_world(
        self, open_service: OpenService, log: Path
    ) -> None:
        crash = {"fault": float(Fault.CRASH), "fault_chunk": 4.0}
        async with open_service(mode="process", restart_pause_s=0.05) as service:
            alone = await _world(service)
            async with (
                service.session(prompt="a lake", seed=7, parameters=crash) as session,
                looking(session) as screen,
            ):
                frames: list[ShownFrame] = []
                while not frames or frames[-1].stamp.chunk < len(alone) - 1:
                    frames += await screen.chunk()
                assert "session.recovering" in {event.type for event in screen.events}
            assert {f.stamp.chunk: _tints(f) for f in frames} == dict(enumerate(alone))
            assert await _world(service) == alone, "in the new worker"

    async def test_c36_prompts_of_every_length_open_a_session_or_name_the_limit(
        self, open_service: OpenService, log: Path
    ) -> None:
        async with open_service() as service:
            for words in (0, 31, 32, 33):
                text = " ".join(["word"] * words)
                async with service.session(prompt=text) as session, looking(session) as screen:
                    assert (await screen.frame()).stamp.prompt == prompt_mark(text)
                    receipt = await screen.applied(await session.push_text(text or "  "))
                    assert receipt.truncated_at == (32 if words > 32 else None)
            for size in (2001, 100_000, 1_000_000):
                await _not_opened(service, "prompt", prompt="x" * size)

    async def test_c37_a_burst_of_2000_updates_is_encoded_once_a_step(
        self, open_service: OpenService, log: Path
    ) -> None:
        async with (
            open_service() as service,
            service.session(parameters={"step_ms": 5.0}) as session,
            looking(session) as screen,
        ):
            await screen.chunk()
            controls: list[str] = []

            async def send() -> None:
                for number in range(1000):
                    controls.append(await session.push_text(f"prompt {number}"))
                    controls.append(await session.update(brightness=number / 1000))

            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(send())
                while not sending.done():
                    await screen.chunk()
            while not all(screen.receipt(control) for control in controls[-2:]):
                await screen.take()
            await screen.frame()
            fates = Counter(
                event.control
                for event in screen.events
                if isinstance(event, ControlApplied | ControlSuperseded)
            )
            assert fates == Counter(controls), "each has one fate"
            assert isinstance(screen.receipt(controls[-1]), ControlApplied)
            assert isinstance(screen.receipt(controls[-2]), ControlApplied)
            assert (await screen.frame()).stamp.prompt == prompt_mark("prompt 999")
            _assert_one_encode_a_chunk(steps(log, session.id, "start"))
            _assert_traffic_is_flat(screen, len(controls))

    async def test_c37_a_key_that_repeats_sixty_times_a_second_changes_no_step(
        self, open_service: OpenService, log: Path
    ) -> None:
        async with (
            open_service() as service,
            service.session(parameters={"step_ms": 5.0}) as session,
            looking(session) as screen,
        ):
            presses: list[str] = []

            async def repeat() -> None:
                for _ in range(600):
                    press = session.push_action({"move": "left"}, edge="press")
                    presses.append(await press)

            async with asyncio.TaskGroup() as tasks:
                repeating = tasks.create_task(repeat())
                while not repeating.done():
                    await screen.chunk()
            while screen.receipt(presses[-1]) is None:
                await screen.take()
            frame = (await screen.chunk())[-1]
            assert frame.stamp.held == {"left"}
            assert frame.stamp.acting == "left"
            _assert_one_encode_a_chunk(steps(log, session.id, "start"))
            _assert_traffic_is_flat(screen, len(presses))

    @pytest.mark.parametrize("unit", [1, 2], ids=["latents", "frames"])
    async def test_c40_a_poisoned_step_is_told_and_leaves_no_trace(
        self, open_service: OpenService, log: Path, unit: int
    ) -> None:
        async with open_service() as service:
            alone = await _world(service, count=15)
            nan = {"fault": float(Fault.NAN), "fault_chunk": 4.0, "fault_unit": float(unit)}
            async with (
                service.session(prompt="a lake", seed=7, parameters=nan) as session,
                looking(session) as screen,
            ):
                frames = await chunks(screen, 15)
                (error,) = [event for event in screen.events if isinstance(event, Error)]
                assert (error.code, error.chunk) == ("non_finite", 4)
            assert [_tints(frame) for frame in frames[::CHUNK]] == alone

    @pytest.mark.parametrize("seed", range(4))
    async def test_c42_any_order_of_pausing(
        self, open_service: OpenService, log: Path, seed: int
    ) -> None:
        dice = random.Random(seed)
        moves = ["pause", "pause", "resume", "resume", "interrupt", "prompt", "look"]
        async with (
            open_service() as service,
            service.session(prompt="a lake") as session,
            looking(session) as screen,
        ):
            control, prompt, stopped = "", "a lake", -1
            for _ in range(25):
                match dice.choice(moves):
                    case "pause":
                        await session.pause()
                        stopped = len(steps(log, session.id)) if stopped < 0 else stopped
                    case "resume":
                        assert stopped in (-1, len(steps(log, session.id))), "ran while paused"
                        await session.resume()
                        stopped = -1
                    case "interrupt":
                        await session.interrupt()
                    case "prompt":
                        prompt += "!"
                        control = await session.push_text(prompt)
                    case "look" if stopped < 0:
                        await screen.chunk()
                assert stopped in (-1, len(steps(log, session.id))), "ran while paused"
            await session.resume()
            if control:
                await screen.applied(control)
            frames = await chunks(screen, 2)
            assert frames[-1].stamp.prompt == prompt_mark(prompt)
            await session.pause()
            await session.close()
            events = await screen.rest()
            assert events[-1].type == "session.closed"
            assert_well_formed(events)
            _assert_no_gap(events)


# --- what is looked for ---


async def _play(
    service: CaseService, attached: asyncio.Event | None = None, **parameters: float
) -> None:
    """Hold a place until cancelled."""
    async with service.session(parameters=parameters) as session, looking(session) as screen:
        if attached is not None:
            attached.set()
        while True:
            await screen.take()


def _newest(log: Path) -> LogLine:
    return steps(log)[-1]


def _has(log: Path, session: str, chunk: int, unit: int, event: str) -> bool:
    return any((line.chunk, line.unit) == (chunk, unit) for line in steps(log, session, event))


async def _after_a_step_took_its_controls(screen: StreamViewer, log: Path) -> None:
    """Return as a chunk is decoded: controls now wait for the next one, two units away."""
    chunk = (await screen.chunk())[-1].stamp.chunk + 1
    await screen.session.update()  # tells that it was seen
    await until(lambda: _has(log, screen.session.id, chunk, 2, "start"))


async def _next_is_from(screen: StreamViewer, word: SessionInterrupted) -> None:
    """The next chunk is the one after the last that was seen, made again."""
    first = await screen.frame()
    assert first.event.discontinuity
    assert first.event.pts_us >= word.next_us
    assert first.stamp.chunk == word.chunk + 1


async def _refused(asking: Any, field: str) -> None:
    with pytest.raises(CommandError) as caught:
        await asking
    assert caught.value.field == field


async def _not_opened(service: CaseService, field: str, **wanted: Any) -> None:
    with pytest.raises(BadRequestError) as caught:
        async with service.session(**wanted):
            pass
    assert caught.value.field == field


def _tints(frame: ShownFrame) -> frozenset[tuple[int, ...]]:
    """Return the colours of a frame, which hold its world's whole past, and no name."""
    return frozenset(map(tuple, frame.picture.reshape(-1, 3).tolist()))


async def _world(
    service: CaseService, *, seed: int | None = 7, count: int = 8, pauses: bool = False
) -> list[frozenset[tuple[int, ...]]]:
    """Return the tints of a new world's first chunks."""
    async with (
        service.session(prompt="a lake", seed=seed) as session,
        looking(session) as screen,
    ):
        found = []
        for _ in range(count):
            found.append(_tints((await screen.chunk())[-1]))
            if pauses:
                await session.pause()
                await session.resume()
        told = {event.seed for event in screen.events if isinstance(event, MediaInit)}
        assert told == {session.view.seed if seed is None else seed}
        return found


async def _lateness_s(seconds: float) -> float:
    """Return how late the event loop was at most, the latest of a hundred times left out."""
    loop = asyncio.get_running_loop()
    end_s, late = loop.time() + seconds, []
    while loop.time() < end_s:
        due_s = loop.time() + 0.005
        await asyncio.sleep(0.005)
        late.append(loop.time() - due_s)
    return sorted(late)[int(len(late) * 0.99) - 1]


def _assert_one_encode_a_chunk(starts: list[LogLine]) -> None:
    """A chunk takes its controls once, and once more when it was held at the lead."""
    units = Counter((line.chunk, line.unit) for line in starts)
    newest = max(chunk for chunk, _ in units)
    for chunk in range(newest):
        assert 1 <= units[chunk, 0] <= 2
        assert units[chunk, 1] <= 2
        assert units[chunk, 2] == 1


def _assert_traffic_is_flat(screen: StreamViewer, commands: int) -> None:
    """A receipt's size does not grow, nor a frame's, nor does a status repeat all there was."""
    sizes: dict[str, list[int]] = {}
    for event in screen.events:
        sizes.setdefault(event.type, []).append(len(event.model_dump_json()))
    for name, each in sizes.items():
        if len(each) > 20:
            assert max(each[10:]) <= max(each[:10]) + 40, name
    media = [event for event in screen.events if isinstance(event, MediaChunk)]
    told = len(screen.events) - len(media)
    assert told <= commands + 4 * len(media) / CHUNK + 40
    assert len({len(event.data) for event in media}) == 1


def _assert_no_gap(events: list[Any]) -> None:
    shown = [event for event in events if isinstance(event, MediaChunk)]
    for before, event in pairwise(shown):
        gap_us = event.pts_us - before.pts_us - before.duration_us
        assert gap_us >= -20
        assert gap_us <= 20 or event.discontinuity


class _SlowEncoder:
    """Takes three steps' time for a frame."""

    def __init__(self, inner: VideoEncoder) -> None:
        self._inner = inner

    def encode(self, frame_HWC: Picture, pts_us: int, force_key: bool) -> EncodedFrame:
        time.sleep(0.003)
        return self._inner.encode(frame_HWC, pts_us, force_key)

    def close(self) -> None:
        self._inner.close()


def _slow_fanout(rate_hz: float) -> VideoFanout:
    def slow(codec: Codec, size: Size, rate_hz: float) -> VideoEncoder:
        return _SlowEncoder(open_encoder(codec, size, rate_hz))

    return VideoFanout(rate_hz, open_encoder=slow)


__all__ = ["CaseSuite"]
