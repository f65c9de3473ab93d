"""The measurements of media, run for a moment, on a network of their own."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from net_namespace import namespace_or_skip

from reverie.bench.latency import at, media_latency
from reverie.bench.machine import this_machine
from reverie.bench.media_report import (
    MOST_MS,
    MediaOptions,
    MediaReport,
    as_media_table,
    write_media_json,
)
from reverie.bench.time_code import WRAP, is_marked, now_units, paint, read
from reverie.bench.viewers import viewers_of_one
from reverie.media import Size
from reverie.media.video.h264 import H264Encoder


@pytest.mark.parametrize("units", [0, 1, WRAP - 1, 0x12345678, 3_000_000_000])
def test_a_picture_says_when_it_was_drawn(units: int) -> None:
    assert read(paint(units, 7)) == units


def test_a_torn_picture_has_no_time() -> None:
    torn = paint(0x12345678, 1)
    torn[:32] = 255
    assert read(torn) is None
    assert read(np.zeros((256, 256, 3), np.uint8)) == 0


def test_a_picture_says_whether_a_key_is_held() -> None:
    assert is_marked(paint(0x12345678, 3, marked=True))
    assert not is_marked(paint(0x12345678, 3))
    assert read(paint(0x12345678, 3, marked=True)) == 0x12345678


def test_the_time_survives_a_lossy_codec() -> None:
    from pictures import H264Decoder

    units = now_units()
    encoder = H264Encoder(Size(256, 256), 30, quality=40)
    assert read(H264Decoder().decode(encoder.encode(paint(units, 3), 0, False).data)) == units


def test_quantiles() -> None:
    assert at(0.5, [3.0, 1.0, 2.0]) == 2.0
    assert at(0.95, [float(each) for each in range(100)]) == 95.0
    assert np.isnan(at(0.5, []))


def test_viewers_are_added_until_their_frames_are_200_ms_old() -> None:
    counts = MediaOptions.chosen(quick=False).viewers
    assert list(counts) == sorted(counts)
    assert counts[-1] >= 64
    assert MOST_MS == 200.0


@pytest.mark.browser
@pytest.mark.timeout(120)
async def test_every_way_is_measured_and_written_down(tmp_path: Path) -> None:
    with namespace_or_skip() as network, network.entered():
        latency = await media_latency(rounds=1, seconds=2.0, settle_s=0.5, mode="inline")
        counts = (1, 2)
        measured = viewers_of_one(counts, seconds=2.0, settle_s=0.5, mode="inline", most_ms=1.0)
        viewers = tuple([each async for each in measured])
    assert [way.way for way in latency] == ["WebRTC", "WebSocket"]
    assert all(way.frames > 0 and way.ours_p50 > 0 and way.bare_p50 > 0 for way in latency)
    assert all(way.commands > 0 and way.command_p95 >= way.command_p50 > 0 for way in latency)
    assert viewers[0].fps > 0
    assert len(viewers) == 1  # its frames are older than asked for, so that no more are tried
    report = MediaReport(this_machine(), latency, viewers)
    assert "stopped before its end" in as_media_table(report)
    table = as_media_table(replace(report, complete=True))
    assert "stopped" not in table
    assert "| WebRTC |" in table
    assert "receipt" in table
    write_media_json(report, tmp_path / "media.json")
    assert (tmp_path / "media.json").stat().st_size > 100
