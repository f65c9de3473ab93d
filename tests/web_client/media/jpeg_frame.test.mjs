import assert from "node:assert/strict";
import { test } from "node:test";

import { cover } from "../../../web_client/media/jpeg_frame.js";

test("a picture of another shape fills the whole, and is cut evenly where it overhangs", () => {
  const square = { width: 128, height: 128 };
  assert.deepEqual(cover({ width: 640, height: 480 }, square), { x: 80, y: 0, width: 480, height: 480 });
  assert.deepEqual(cover({ width: 90, height: 160 }, square), { x: 0, y: 35, width: 90, height: 90 });
  assert.deepEqual(cover(square, square), { x: 0, y: 0, ...square });
});
