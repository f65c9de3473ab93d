"""The end of an agent's chain of sound: passes all on, and tells of a cut."""

import asyncio

from livekit import rtc
from livekit.agents import AgentSession
from livekit.agents.voice.io import AudioOutput, AudioOutputCapabilities
from livekit.plugins.reverie_world.audio_tail import InterruptingTail, install_tail


class Loudspeaker(AudioOutput):
    """What stands at the end of a chain, and keeps what comes to it."""

    def __init__(self, onward: AudioOutput | None = None) -> None:
        super().__init__(
            label="Loudspeaker",
            capabilities=AudioOutputCapabilities(pause=True),
            next_in_chain=onward,
            sample_rate=24_000,
        )
        self.heard: list[str] = []

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        self.heard.append(f"{frame.samples_per_channel} samples")
        if self.next_in_chain is not None:
            await self.next_in_chain.capture_frame(frame)

    def flush(self) -> None:
        super().flush()
        self.heard.append("flush")
        if self.next_in_chain is not None:
            self.next_in_chain.flush()

    def clear_buffer(self) -> None:
        self.heard.append("clear")
        if self.next_in_chain is not None:
            self.next_in_chain.clear_buffer()
        else:
            self.on_playback_finished(playback_position=0.1, interrupted=True)


def voice() -> rtc.AudioFrame:
    return rtc.AudioFrame(bytes(480), 24_000, 1, 240)


async def test_an_agents_voice_goes_through_and_its_cut_is_told() -> None:
    session, loudspeaker, cuts = AgentSession[None](), Loudspeaker(), list[int]()
    session.output.audio = loudspeaker
    tail = install_tail(session.output.audio, lambda: cuts.append(1))
    assert tail is not None
    session.output.replace_audio_tail(tail)
    chain = session.output.audio
    assert chain is not None
    assert chain.sample_rate == 24_000
    await chain.capture_frame(voice())
    chain.flush()
    assert loudspeaker.heard == ["240 samples", "flush"]
    assert cuts == []
    chain.clear_buffer()
    assert loudspeaker.heard[-1] == "clear"
    assert cuts == [1]
    assert (await chain.wait_for_playout()).interrupted


async def test_wrappers_above_the_end_stay_where_they_are() -> None:
    session, loudspeaker = AgentSession[None](), Loudspeaker()
    wrapper = Loudspeaker(loudspeaker)
    session.output.audio = wrapper
    cuts: list[int] = []
    tail = install_tail(session.output.audio, lambda: cuts.append(1))
    assert tail is not None
    session.output.replace_audio_tail(tail)
    assert session.output.audio is wrapper
    await wrapper.capture_frame(voice())
    wrapper.clear_buffer()
    assert "240 samples" in loudspeaker.heard
    assert cuts == [1]


async def test_there_is_one_tail_however_often_it_is_installed() -> None:
    session = AgentSession[None]()
    assert install_tail(session.output.audio, lambda: None) is None, "there is no voice yet"
    for above in (None, Loudspeaker()):
        chain: AudioOutput = Loudspeaker(above)
        tail = install_tail(chain, lambda: None)
        assert isinstance(tail, InterruptingTail)
        assert install_tail(tail, lambda: None) is None
        assert install_tail(Loudspeaker(tail), lambda: None) is None


class Silent(Loudspeaker):
    """Never tells that it has ended."""

    def clear_buffer(self) -> None:
        self.heard.append("clear")


async def test_an_end_that_is_never_told_is_waited_for_no_longer_than_the_limit() -> None:
    tail = InterruptingTail(Silent(), lambda: None, limit_s=0.01)
    await tail.capture_frame(voice())
    tail.flush()
    tail.clear_buffer()
    async with asyncio.timeout(20):
        assert (await tail.wait_for_playout()).interrupted


async def test_an_end_that_is_told_twice_is_heard_once() -> None:
    far, heard = Loudspeaker(), list[object]()
    tail = InterruptingTail(far, lambda: None, limit_s=0.01)
    tail.on("playback_finished", heard.append)
    await tail.capture_frame(voice())
    tail.flush()
    tail.clear_buffer()
    far.on_playback_finished(playback_position=0.1, interrupted=True)
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, passed.set)
    await passed.wait()  # the limit is over as well, and nothing was due any more
    assert len(heard) == 1
    assert (await tail.wait_for_playout()).interrupted
