import assert from "node:assert/strict";
import { test } from "node:test";

import { LONGEST_S, momentsOf } from "../../../web_client/media/file_frames.js";

test("a clip is looked at in the middle of each of its pictures, wherever its clock begins", () => {
  for (const beginS of [0, 60, 130, -0.5]) {
    const { moments, isCut } = momentsOf(beginS, beginS + 1, 10);
    assert.equal(moments.length, 10);
    assert.equal(isCut, false);
    assert.ok(Math.abs(moments[0] - beginS - 0.05) < 1e-9);
    assert.ok(Math.abs(moments[9] - beginS - 0.95) < 1e-9);
  }
});

test("a clip is cut by its own length and not by when it ends", () => {
  assert.deepEqual(momentsOf(0, LONGEST_S + 1, 12).isCut, true);
  assert.equal(momentsOf(0, LONGEST_S + 1, 12).moments.length, 12 * LONGEST_S);
  assert.equal(momentsOf(500, 501, 12).isCut, false);
});

test("what is shorter than a picture is one picture", () => {
  for (const endS of [0, 0.01, Number.NaN]) assert.equal(momentsOf(0, endS, 12).moments.length, 1);
});
