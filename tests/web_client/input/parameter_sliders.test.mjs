import assert from "node:assert/strict";
import { test } from "node:test";

import { stepOf } from "../../../web_client/input/parameter_sliders.js";

for (const [low, high, usual, step] of /** @type {[number, number, number, number | "any"][]} */ ([
  [0, 3, 1, 0.02],
  [1, 4, 1, 0.02],
  [0, 1, 0.5, 0.01],
  [0, 60_000, 0, 500],
  [0, 1, 0.125, 0.005],
  [0.1, 0.7, 0.25, 0.005],
  [0, 1, 1 / 3, "any"],
])) {
  test(`a slider from ${low} to ${high} holds its default of ${usual}`, () => {
    assert.equal(stepOf({ low, high, default: usual, integer: false }), step);
  });
}

test("a slider of whole numbers goes by one", () => {
  assert.equal(stepOf({ low: 0, high: 500, default: 7, integer: true }), 1);
});
