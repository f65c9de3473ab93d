import assert from "node:assert/strict";
import { test } from "node:test";

import { Pacer } from "../../../web_client/media/pacer.js";

const FRAME_US = 100_000;

const picture = (/** @type {number} */ index, discontinuity = false) => ({
  ptsUs: index * FRAME_US,
  durationUs: FRAME_US,
  discontinuity,
});

/** Show all that waits, at the moments at which the pacer asks to be called again. */
function play(/** @type {Pacer<any>} */ pacer, /** @type {number} */ nowMs) {
  const shown = [];
  for (let at = nowMs; ; ) {
    const { picture: next, waitMs } = pacer.take(at);
    if (next !== null) shown.push([next.ptsUs / FRAME_US, at]);
    else if (waitMs === Infinity) return shown;
    else at += waitMs;
  }
}

function pacerOf(/** @type {ReturnType<typeof picture>[]} */ ...pictures) {
  const pacer = new Pacer();
  for (const each of pictures) pacer.add(each);
  return pacer;
}

test("nothing waits: there is no moment to wait for", () => {
  assert.deepEqual(new Pacer().take(5), { picture: null, waitMs: Infinity });
});

test("the first picture is shown at once and the others at their distance", () => {
  const pacer = pacerOf(picture(0), picture(1), picture(2));
  assert.deepEqual(play(pacer, 1000), [[0, 1000], [1, 1100], [2, 1200]]);
});

test("a timer that is a little late does not move the clock", () => {
  const pacer = pacerOf(picture(0), picture(1), picture(2));
  pacer.take(1000);
  assert.equal(pacer.take(1115).picture?.ptsUs, FRAME_US);
  assert.equal(pacer.take(1115).waitMs, 85);
});

test("a late picture is shown at once and no burst follows it", () => {
  const pacer = pacerOf(picture(0));
  play(pacer, 1000);
  pacer.add(picture(1));
  pacer.add(picture(2));
  assert.deepEqual(play(pacer, 1700), [[1, 1700], [2, 1800]]);
});

test("after a discontinuity the next picture is shown at once", () => {
  const pacer = pacerOf(picture(0), picture(1, true), picture(2));
  assert.deepEqual(play(pacer, 1000), [[0, 1000], [1, 1000], [2, 1100]]);
});

test("a gap of media time is a jump, not a wait", () => {
  const pacer = pacerOf(picture(0), picture(500), picture(501));
  assert.deepEqual(play(pacer, 1000), [[0, 1000], [500, 1000], [501, 1100]]);
});

test("a stream that begins again far back is shown at once", () => {
  const pacer = pacerOf(picture(500), picture(0));
  assert.deepEqual(play(pacer, 1000), [[500, 1000], [0, 1000]]);
});

test("dropping gives back what was dropped; what is kept stays on time, and after nothing the next is shown at once", () => {
  const pacer = pacerOf(picture(0), picture(1), picture(2), picture(3));
  pacer.take(1000);
  const dropped = pacer.drop(({ ptsUs }) => ptsUs >= 2 * FRAME_US);
  assert.deepEqual(dropped.map((each) => each.ptsUs / FRAME_US), [2, 3]);
  assert.equal(pacer.take(1010).picture, null, "the kept one is not due yet");
  assert.deepEqual(play(pacer, 1100), [[1, 1100]]);
  pacer.add(picture(4));
  pacer.drop(() => true);
  pacer.add(picture(5));
  assert.deepEqual(play(pacer, 1110), [[5, 1110]]);
});

test("a watcher who is far behind catches up without skipping", () => {
  const pacer = pacerOf(...Array.from({ length: 30 }, (_, index) => picture(index)));
  const shown = play(pacer, 0);
  assert.deepEqual(shown.map(([index]) => index), Array.from({ length: 30 }, (_, index) => index));
  const took = shown[29][1];
  assert.ok(took < 2800 && took > 2600, `2900 ms of pictures took ${took} ms`);
});

test("pictures at their own pace are never hurried", () => {
  const pacer = pacerOf(...Array.from({ length: 10 }, (_, index) => picture(index)));
  assert.equal(play(pacer, 0).at(-1)?.[1], 900);
});

const inChunk = (/** @type {number} */ index, /** @type {number} */ size) => ({
  ...picture(index),
  chunk: Math.floor(index / size),
});

/**
 * Add pictures as they come, and show each as soon as it is due.
 * @param {number[]} came when each came, in ms
 * @param {number} size pictures of a chunk
 * @returns {number[]} when each was shown
 */
function played(came, size = 1) {
  const pacer = new Pacer();
  /** @type {number[]} */
  const shown = [];
  let next = 0;
  for (let at = 0; shown.length < came.length; at++) {
    for (; came[next] <= at; next++) pacer.add(inChunk(next, size), at);
    while (pacer.take(at).picture !== null) shown.push(at);
  }
  return shown;
}

test("one late picture delays those after it for a few seconds, and not for good", () => {
  const came = Array.from({ length: 80 }, (_, index) => 100 * index + (index === 10 ? 80 : 0));
  const shown = played(came);
  assert.ok(shown[11] - came[11] > 70, `${shown[11] - came[11]}`);
  const delays = shown.slice(60).map((at, index) => at - came[60 + index]);
  assert.ok(Math.max(...delays) <= 5, `${delays}`);
});

test("what is won back is no more than what was lost: the clock never gets ahead", () => {
  const came = Array.from({ length: 100 }, (_, index) => (index < 10 ? 100 * index : 100 * index - 300));
  const shown = played(came); // pictures that come 300 ms early, as they do for a distant page
  assert.deepEqual(shown.map((at, index) => Math.abs(at - 100 * index) <= 3), Array(100).fill(true));
});

test("a model that is slower than it declared is shown as it comes", () => {
  for (const everyMs of [105, 110, 125]) {
    const came = Array.from({ length: 60 }, (_, index) => everyMs * index);
    assert.deepEqual(played(came), came);
  }
});

test("after a stall pictures are shown as they come again", () => {
  const came = Array.from({ length: 40 }, (_, index) => 100 * index + (index >= 10 ? 500 : 0));
  assert.deepEqual(played(came), came);
});

test("the pictures of slow chunks are spread, and closed up when the model is fast again", () => {
  const came = Array.from({ length: 160 }, (_, index) => 500 * Math.floor(index / 4));
  const shown = played(came, 4);
  const gaps = shown.slice(81).map((at, index) => at - shown[80 + index]);
  assert.ok(Math.max(...gaps) < 150 && Math.min(...gaps) > 105, `${gaps}`);
  const faster = came.map((_, index) => (index < 80 ? 500 : 400) * Math.floor(index / 4));
  for (let index = 80; index < 160; index++) faster[index] += 80 * 25;
  const again = played(faster, 4).slice(140);
  assert.ok(again.at(-1) - again[0] < 1.03 * 1900, `${again}`);
});

test("what waits is told in media time", () => {
  const pacer = pacerOf(picture(0), picture(1), picture(2));
  assert.equal(pacer.waitingUs, 3 * FRAME_US);
  pacer.take(0);
  assert.equal(pacer.waitingUs, 2 * FRAME_US);
});
