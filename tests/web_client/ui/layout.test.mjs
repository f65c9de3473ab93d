import assert from "node:assert/strict";
import { test } from "node:test";

import { fit, isOther } from "../../../web_client/ui/layout.js";

const SQUARE = { width: 128, height: 128 };

test("a picture is shown at a whole multiple of its pixels", () => {
  assert.deepEqual(fit(SQUARE, { width: 880, height: 676 }, 1), { width: 640, height: 640 });
});

test("device pixels count, not CSS pixels", () => {
  assert.deepEqual(fit(SQUARE, { width: 332, height: 500 }, 3), { width: 896 / 3, height: 896 / 3 });
});

test("when whole multiples waste too much, the room is filled", () => {
  assert.deepEqual(fit(SQUARE, { width: 332, height: 500 }, 1), { width: 332, height: 332 });
});

test("a picture larger than its room shrinks to it and keeps its shape", () => {
  assert.deepEqual(fit({ width: 1600, height: 400 }, { width: 800, height: 800 }, 1), {
    width: 800,
    height: 200,
  });
});

test("the light is painted anew when a person would see the difference, and not before", () => {
  const light = () => /** @type {import("../../../web_client/ui/layout.js").Colour[]} */ ([[10, 20, 30], [90, 90, 90]]);
  assert.equal(isOther(light(), []), true, "the first one");
  assert.equal(isOther(light(), light()), false);
  const near = light();
  near[1][2] += 10;
  assert.equal(isOther(near, light()), false);
  near[1][2] += 10;
  assert.equal(isOther(near, light()), true);
});
