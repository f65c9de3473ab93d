import assert from "node:assert/strict";
import { test } from "node:test";

import {
  AnswerTimes, cut, Jitter, measured, newest, NOTHING_MEASURED,
} from "../../../web_client/transport/line_stats.js";
import { countersOf } from "../../../web_client/transport/peer_attachment.js";

/** @typedef {import("../../../web_client/transport/line_stats.js").LineStats} LineStats */

const COUNTERS = { roundTripMs: 40, jitterMs: 2, bytes: 1000, packets: 100, lost: 1, bufferedS: 1, buffered: 10 };
const known = (/** @type {number} */ atMs) => ({ atMs, fps: 12, leadMs: 80, waitingMs: 7 });

/** @param {[number, object][]} seconds */
function after(...seconds) {
  return seconds.reduce(
    (stats, [atMs, more]) => measured(stats, { ...COUNTERS, ...more }, known(atMs)),
    /** @type {LineStats} */ (NOTHING_MEASURED),
  );
}

test("a second is what has been counted since the one before", () => {
  const more = { bytes: 26_000, packets: 145, lost: 6, bufferedS: 1.6, buffered: 22 };
  const sample = newest(after([1000, {}], [2000, more]));
  assert.deepEqual([sample?.bitsPerS, sample?.lostShare, sample?.fps, sample?.leadMs], [200_000, 0.1, 12, 80]);
  assert.ok(Math.abs((sample?.waitingMs ?? 0) - 50) < 1e-6);
});

test("the first second of an attachment tells nothing that is counted, and a late packet is no gain", () => {
  const first = newest(after([1000, {}]));
  assert.deepEqual([first?.bitsPerS, first?.lostShare, first?.waitingMs], [null, null, null]);
  const back = after([1000, {}], [2000, { lost: 0, packets: 110 }]);
  assert.equal(newest(back)?.lostShare, 0);
  const still = after([1000, {}], [2000, {}]);
  assert.deepEqual([newest(still)?.lostShare, newest(still)?.waitingMs], [null, null], "nothing came");
});

test("over a socket nothing is lost, and the page knows what waits", () => {
  const none = { packets: null, lost: null, bufferedS: null, buffered: 0 };
  const sample = newest(after([1000, none], [2000, none]));
  assert.deepEqual([sample?.lostShare, sample?.waitingMs], [null, 7]);
});

test("another attachment counts from zero, and the minute before it stays on the graph", () => {
  const stats = cut(after([1000, {}], [2000, { bytes: 9000 }]));
  assert.equal(newest(stats), null, "nothing is known of the line that is not there");
  const again = measured(stats, { ...COUNTERS, bytes: 10 }, known(3000));
  assert.equal(newest(again)?.bitsPerS, null);
  assert.deepEqual(again.samples.map(({ atMs }) => atMs), [1000, 2000, 3000]);
  const minute = measured(again, COUNTERS, known(62_500));
  assert.deepEqual(minute.samples.map(({ atMs }) => atMs), [3000, 62_500]);
});

test("jitter is how much the way varies, whatever the clocks say", () => {
  const steady = new Jitter();
  const shaken = new Jitter();
  assert.equal(steady.ms, null);
  for (let index = 0; index < 200; index += 1) {
    steady.add(index * 80_000, 1e9 + index * 80);
    shaken.add(index * 80_000, 1e9 + index * 80 + (index % 2) * 30);
  }
  assert.ok((steady.ms ?? 9) < 1e-6);
  assert.ok(Math.abs((shaken.ms ?? 0) - 30) < 0.1);
});

test("the round trip over a socket is that of the quickest answer of late", () => {
  const times = new AnswerTimes();
  assert.equal(times.shortestMs(0), null);
  for (const [id, tookMs] of /** @type {[string, number][]} */ ([["a", 41], ["b", 900], ["c", 44]])) {
    times.sent(id, 1000);
    times.answered(id, 1000 + tookMs);
  }
  times.answered("unknown", 1001);
  times.answered("a", 1002);
  assert.equal(times.shortestMs(2000), 41);
  assert.equal(times.shortestMs(90_000), null, "long ago");
  for (let index = 0; index < 100; index += 1) times.sent(`playhead ${index}`, 2000);
  times.answered("playhead 0", 2001);
  assert.equal(times.shortestMs(2001), 41, "those that are never answered are forgotten");
});

test("a peer connection's counters are those of the pair in use and of the pictures", () => {
  const reports = [
    { type: "transport", selectedCandidatePairId: "used" },
    { type: "candidate-pair", id: "other", nominated: true, state: "succeeded", currentRoundTripTime: 9 },
    { type: "candidate-pair", id: "used", currentRoundTripTime: 0.02, bytesReceived: 5000 },
    { type: "inbound-rtp", kind: "audio", packetsReceived: 7, packetsLost: 1, jitter: 1 },
    {
      type: "inbound-rtp", kind: "video", packetsReceived: 20, packetsLost: 2, jitter: 0.004,
      jitterBufferDelay: 1.5, jitterBufferEmittedCount: 12,
    },
  ];
  assert.deepEqual(countersOf(reports, 33), {
    roundTripMs: 20, jitterMs: 4, bytes: 5000, packets: 27, lost: 3, bufferedS: 1.5, buffered: 12,
  });
  const early = countersOf([{ type: "candidate-pair", id: "a", nominated: true, state: "succeeded" }], 33);
  assert.deepEqual([early.roundTripMs, early.lost, early.jitterMs], [33, null, null]);
});
