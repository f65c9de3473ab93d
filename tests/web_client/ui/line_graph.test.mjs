import assert from "node:assert/strict";
import { test } from "node:test";

import { graphOf } from "../../../web_client/ui/line_graph.js";

/** @param {number} atMs @param {number | null} roundTripMs */
function sample(atMs, roundTripMs, fps = 12, leadMs = 80) {
  return { atMs, roundTripMs, fps, leadMs, jitterMs: null, bitsPerS: null, lostShare: null, waitingMs: null };
}

test("the newest second is at the right, a minute before it at the left, and zero at the ground", () => {
  const { paths, mostMs } = graphOf([sample(0, 0), sample(60_000, 100)]);
  assert.equal(mostMs, 100);
  assert.equal(paths.roundTripMs, "M0.0,60.0L300.0,0.0");
  assert.equal(paths.leadMs, "M0.0,12.0L300.0,12.0");
  assert.equal(paths.fps, "M0.0,60L0.0,0.0L300.0,0.0L300.0,60Z");
});

test("the scale grows with what is shown", () => {
  const scale = (/** @type {number} */ ms) => graphOf([sample(0, ms), sample(1000, ms)]).mostMs;
  assert.deepEqual([3, 120, 600, 70_000].map(scale), [100, 250, 1000, 70_000]);
});

test("what is not known leaves a gap", () => {
  const known = [sample(0, 50), sample(1000, 50), sample(2000, null), sample(3000, 50), sample(4000, 50)];
  assert.equal(graphOf(known).paths.roundTripMs.match(/M/g)?.length, 2);
  const all = known.map((each) => ({ ...each, roundTripMs: null }));
  assert.equal(graphOf(all).paths.roundTripMs, "");
  assert.deepEqual(graphOf([]).paths, { fps: "", leadMs: "", roundTripMs: "" });
});
