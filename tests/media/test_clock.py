"""The real clock, and the one that tests own."""

import asyncio

from fake_clock import FakeClock

from reverie.media import Clock, MonotonicClock


async def test_the_real_clock_does_not_run_backwards() -> None:
    clock: Clock = MonotonicClock()
    before = clock.now_us()
    await clock.sleep(-1)
    assert clock.now_us() >= before


async def test_the_fake_clock_wakes_only_who_has_slept_enough() -> None:
    clock = FakeClock()
    woken: list[str] = []

    async def sleep(name: str, seconds: float) -> None:
        checked: Clock = clock
        await checked.sleep(seconds)
        woken.append(name)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sleep("long", 2.0))
        tasks.create_task(sleep("short", 1.0))
        while clock.sleepers < 2:
            await asyncio.sleep(0)
        clock.advance(1.5)
        while not woken:
            await asyncio.sleep(0)
        assert (woken, clock.sleepers) == (["short"], 1)
        clock.advance(0.5)
    assert woken == ["short", "long"]
