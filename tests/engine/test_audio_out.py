"""A loop whose chunks are heard as well as seen."""

from loop_rig import Rig
from sounding_model import FRAMES, RATE_HZ, SoundingFamily

from reverie.engine.emissions import FramesOut, SamplesOut, StepFailed
from reverie.models.contract.loop import LoopRequest

CHUNK_US = round(FRAMES / RATE_HZ * 1e6)


def sounding(**parameters: float) -> Rig:
    rig = Rig(SoundingFamily())
    rig.family.spec.validate()
    rig.open(LoopRequest("s1", 7, parameters=parameters))
    return rig


def test_sound_and_pictures_of_a_chunk_begin_together_and_follow_their_own() -> None:
    rig = sounding()
    rig.run_chunks("s1", 4)
    sounds = rig.heard_of("s1", SamplesOut)[:4]
    assert [(out.chunk, out.pts_us, out.duration_us) for out in sounds] == [
        (chunk, chunk * CHUNK_US, CHUNK_US) for chunk in range(4)
    ]
    assert [out.header.pts_us for out in rig.frames("s1")[:4]] == [out.pts_us for out in sounds]
    assert not any(out.discontinuity for out in sounds)


def test_sound_that_is_too_short_never_comes_far_apart_from_its_pictures() -> None:
    rig = sounding(short=300)  # 12.5 ms of every 200
    rig.run_chunks("s1", 40)
    video = {out.header.chunk: out.header.pts_us for out in rig.heard_of("s1", FramesOut)}
    sounds = [out for out in rig.heard_of("s1", SamplesOut) if out.chunk in video]
    assert max(abs(video[out.chunk] - out.pts_us) for out in sounds) <= 40_000
    ends = [out.pts_us + out.duration_us for out in sounds]
    assert all(out.pts_us >= end for out, end in zip(sounds[1:], ends, strict=False))


def test_after_an_interrupt_the_sound_continues_where_the_pictures_do_and_says_so() -> None:
    rig = sounding()
    rig.seen_at_once = False
    driver = rig.drivers["s1"]
    rig.run(lambda: bool(rig.frames("s1")))
    driver.interrupt(None)
    rig.seen_at_once = True
    frames = rig.run_chunks("s1", 1)[0]
    sound = rig.heard_of("s1", SamplesOut)[1]
    assert sound.pts_us == frames.header.pts_us == CHUNK_US
    assert sound.discontinuity
    assert frames.header.discontinuity


def test_a_sample_that_is_not_finite_rolls_the_step_back() -> None:
    rig = sounding(fault=1, fault_chunk=1)
    rig.run_chunks("s1", 3)
    [failed] = rig.heard_of("s1", StepFailed)
    assert (failed.code, failed.chunk, failed.fatal) == ("non_finite", 1, False)
    starts = [out.pts_us for out in rig.heard_of("s1", SamplesOut)]
    assert starts == [chunk * CHUNK_US for chunk in range(len(starts))]
