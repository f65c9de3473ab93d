import assert from "node:assert/strict";
import { test } from "node:test";

import { waitedMsOf } from "../../../web_client/media/peer_screen.js";
import { PresentedFrames, rtpDistance } from "../../../web_client/media/presented_frames.js";

const STEP = 7500; // of a 90 kHz clock, at 12 pictures a second
const CHUNK = 3;

const announced = (/** @type {number} */ index, firstRtp = 1000) => ({
  pts_us: index * 83_333,
  duration_us: 83_333,
  chunk: Math.floor(index / CHUNK),
  last: index % CHUNK === CHUNK - 1,
  rtp_timestamp: (firstRtp + index * STEP) >>> 0,
});

function presentedOf(/** @type {number[]} */ ...indices) {
  const presented = new PresentedFrames();
  for (const index of indices) presented.announce(/** @type {any} */ (announced(index)), index);
  return presented;
}

const rtpOf = (/** @type {number} */ index) => announced(index).rtp_timestamp;

test("a picture that is on the screen is the one that was announced with its timestamp", () => {
  const presented = presentedOf(0, 1, 2);
  const passed = presented.present(rtpOf(0), 77);
  assert.deepEqual([passed?.shown.pts_us, passed?.atMs, passed?.skipped], [0, 77, 0]);
  assert.equal(passed?.chunk, null, "its chunk goes on");
  assert.equal(presented.awaited, 2);
});

test("the picture may come before its announcement, and keeps the time at which it was seen", () => {
  const presented = new PresentedFrames();
  assert.equal(presented.present(rtpOf(2), 55), null);
  const passed = presented.announce(/** @type {any} */ (announced(2)), 60);
  assert.deepEqual([passed?.atMs, passed?.chunk, passed?.skipped], [55, 0, 0]);
});

test("pictures that were passed over are counted, and end their chunk all the same", () => {
  const passed = presentedOf(0, 1, 2, 3).present(rtpOf(3), 5);
  assert.deepEqual([passed?.skipped, passed?.chunk, passed?.shown.pts_us], [3, 0, 3 * 83_333]);
});

test("an announcement that comes after a newer picture counts as passed over", () => {
  const presented = new PresentedFrames();
  presented.present(rtpOf(4), 5);
  const passed = presented.announce(/** @type {any} */ (announced(2)), 6);
  assert.deepEqual([passed?.skipped, passed?.chunk], [1, 0]);
});

test("timestamps wrap around", () => {
  assert.equal(rtpDistance(3, 2 ** 32 - 2), 5);
  const presented = new PresentedFrames();
  const first = 2 ** 32 - STEP;
  for (const index of [0, 1]) presented.announce(/** @type {any} */ (announced(index, first)), 0);
  assert.equal(presented.present(first >>> 0, 1)?.skipped, 0);
  assert.equal(presented.present(announced(1, first).rtp_timestamp, 2)?.skipped, 0);
});

test("what an interrupt drops is not waited for, and not shown when it comes late", () => {
  const presented = presentedOf(0, 1, 2, 3);
  presented.present(rtpOf(0), 1);
  presented.dropAfter(-1, announced(3).pts_us);
  assert.equal(presented.awaited, 1);
  assert.ok(presented.isCut(rtpOf(2)));
  assert.ok(!presented.isCut(rtpOf(3)));
});

test("a chunk in which a key acts is shown although the next key drops what is behind it", () => {
  const presented = presentedOf(0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
  presented.present(rtpOf(0), 1);
  presented.dropAfter(1, announced(9).pts_us);
  assert.equal(presented.awaited, 6, "the rest of chunks 0 and 1, and the next chunk");
  assert.deepEqual([5, 6, 8, 9].map((index) => presented.isCut(rtpOf(index))), [false, true, true, false]);
  assert.equal(presented.present(rtpOf(5), 2)?.chunk, 1);
});

test("what does not come is given up, so that nobody waits for ever", () => {
  const presented = presentedOf(0, 1, 2);
  assert.equal(presented.giveUp(100), null);
  const lost = presented.giveUp(5000);
  assert.deepEqual([lost?.chunk, lost?.skipped, presented.awaited], [0, 3, 0]);
  assert.equal(presented.giveUp(5000), null);
});

test("where the browser names no timestamp the newest picture counts", () => {
  assert.equal(presentedOf(0, 1).presentNewest(9)?.shown.pts_us, 83_333);
  assert.equal(new PresentedFrames().presentNewest(9), null);
});

test("announcements without pictures are kept in bounds", () => {
  assert.equal(presentedOf(...Array.from({ length: 2000 }, (_, index) => index)).awaited, 512);
});

test("a chunk's wait is that of its first picture, and not known where that was not shown", () => {
  const presented = presentedOf(0, 1, 2, 3, 4, 5, 6, 7, 8);
  assert.equal(presented.present(rtpOf(0), 1, 40)?.waitedMs, null, "its chunk goes on");
  presented.present(rtpOf(1), 2, 999);
  assert.deepEqual([presented.present(rtpOf(2), 3, 999)].map((each) => [each?.chunk, each?.waitedMs]), [[0, 40]]);
  presented.present(rtpOf(4), 4, 7); // the first picture of chunk 1 was lost
  assert.equal(presented.present(rtpOf(5), 5, 8)?.waitedMs, null);
  presented.present(rtpOf(6), 6, 12);
  presented.dropAfter(-1, announced(9).pts_us);
  presented.announce(/** @type {any} */ ({ ...announced(9), chunk: 2, last: true }), 7);
  assert.equal(presented.present(rtpOf(9), 8, 3)?.waitedMs, 3, "made again, under the same number");
});

test("the browser's wait leaves out the time on the line and of decoding", () => {
  const metadata = { receiveTime: 100, presentationTime: 130, processingDuration: 0.004 };
  assert.ok(Math.abs((waitedMsOf(metadata) ?? 0) - 26) < 1e-9);
  assert.equal(waitedMsOf({ ...metadata, presentationTime: 90 }), 0);
  assert.equal(waitedMsOf({ presentationTime: 130 }), null, "not every browser tells");
});
