import assert from "node:assert/strict";
import { test } from "node:test";

import { parseBinary, parseText, WireError } from "../../../web_client/transport/wire.js";

/** @param {Uint8Array} header @param {number[]} payload */
function frame(header, payload, size = header.length) {
  const bytes = new Uint8Array(4 + header.length + payload.length);
  new DataView(bytes.buffer).setUint32(0, size);
  bytes.set(header, 4);
  bytes.set(payload, 4 + header.length);
  return bytes.buffer;
}

const encode = (/** @type {unknown} */ value) => new TextEncoder().encode(JSON.stringify(value));

test("a binary frame is its header and the bytes after it", () => {
  const event = { type: "media.chunk", pts_us: 9_007_199_254_740_991, stream: "vidéo" };
  const { header, payload } = parseBinary(frame(encode(event), [0, 0, 1, 0x65]));
  assert.deepEqual(header, event);
  assert.deepEqual([...payload], [0, 0, 1, 0x65]);
});

test("a payload may be empty", () => {
  assert.equal(parseBinary(frame(encode({ type: "x" }), [])).payload.length, 0);
});

for (const [what, buffer] of [
  ["an empty frame", new ArrayBuffer(0)],
  ["a frame without a whole length", new ArrayBuffer(3)],
  ["a header longer than the frame", frame(encode({ type: "x" }), [], 4_000_000_000)],
  ["a header that is not JSON", frame(new TextEncoder().encode("{"), [])],
  ["a header that is not UTF-8", frame(new Uint8Array([0xff, 0xfe]), [])],
  ["a header without a type", frame(encode({}), [])],
  ["a header that is null", frame(encode(null), [])],
]) {
  test(`${what} is refused`, () => {
    assert.throws(() => parseBinary(/** @type {ArrayBuffer} */ (buffer)), WireError);
  });
}

test("text that is not an event is refused", () => {
  assert.deepEqual(parseText('{"type":"error"}'), { type: "error" });
  for (const text of ["", "nonsense", "[]", "3", '{"type":3}']) {
    assert.throws(() => parseText(text), WireError);
  }
});
