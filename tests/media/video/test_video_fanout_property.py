"""Whatever is done to a fan-out, in whatever order, what is delivered makes sense."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import H264Decoder, decode_jpeg, numbered, read_number

from reverie.media import Codec, FrameTag, MediaFrame, VideoFanout, VideoSubscription

FRAME_US = 66_667

ACTIONS = st.lists(
    st.one_of(
        st.sampled_from(["publish", "yield", "drain"]),
        st.sampled_from(["publish", "yield", "flush", "jump", "join h264", "join jpeg"]),
        st.builds("{} {}".format, st.sampled_from(["leave", "request"]), st.integers(0, 3)),
    ),
    min_size=20,
    max_size=60,
).map(lambda actions: ["join h264", *actions])


@dataclass
class Watcher:
    """Decodes what it is handed, at once, and holds it against what must be."""

    codec: Codec
    decoder: H264Decoder = field(default_factory=H264Decoder)
    numbers: list[int] = field(default_factory=list)
    lost: int = -1  # the newest frame that a flush has taken back
    left: bool = False
    subscription: VideoSubscription | None = None

    def take(self, frame: MediaFrame) -> None:
        data = frame.encoded.data
        picture = decode_jpeg(data) if self.codec is Codec.JPEG else self.decoder.decode(data)
        assert not self.left
        assert read_number(picture) == frame.tag.chunk
        assert frame.tag.chunk > self.lost
        assert frame.tag.chunk > max(self.numbers, default=-1)
        assert frame.encoded.pts_us == frame.tag.pts_us
        assert frame.encoded.key or not frame.tag.discontinuity
        self.numbers.append(frame.tag.chunk)


class Play:
    """Carries actions out on one fan-out."""

    def __init__(self, fanout: VideoFanout) -> None:
        self.fanout = fanout
        self.watchers: list[Watcher] = []
        self.published = 0

    async def act(self, action: str) -> None:
        match action.split():
            case ["publish" | "jump"]:
                number, jump = self.published, action == "jump"
                tag = FrameTag(number * FRAME_US, FRAME_US, number, 0, True, number, jump)
                self.fanout.publish(numbered(number), tag)
                self.published += 1
            case ["flush"]:
                self.fanout.flush()
                for watcher in self.watchers:
                    watcher.lost = self.published - 1
            case ["drain"]:
                await self.fanout.drain()
            case ["yield"]:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            case ["join", codec]:
                watcher = Watcher(Codec(codec))
                watcher.subscription = self.fanout.subscribe(watcher.codec, watcher.take)
                self.watchers.append(watcher)
            case ["leave", who] if int(who) < len(self.watchers):
                watcher = self.watchers[int(who)]
                assert watcher.subscription is not None
                watcher.subscription.close()
                watcher.left = True
            case ["request", who] if int(who) < len(self.watchers):
                watcher = self.watchers[int(who)]
                assert watcher.subscription is not None
                watcher.subscription.request_key_frame()


async def play(actions: list[str]) -> Play:
    fanout = VideoFanout(15)
    played = Play(fanout)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(fanout.run(), name="encode")
        for action in actions:
            await played.act(action)
        await fanout.drain()
        await played.act("publish")
        await fanout.drain()
        fanout.close()
    return played


@settings(max_examples=60, deadline=None)
@given(ACTIONS)
def test_every_frame_delivered_can_be_decoded_is_new_and_was_not_taken_back(
    actions: list[str],
) -> None:
    played = asyncio.run(play(actions))
    for watcher in played.watchers:
        assert watcher.left or watcher.numbers[-1] == played.published - 1
    assert played.fanout.dropped == 0
