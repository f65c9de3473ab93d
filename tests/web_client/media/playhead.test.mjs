import assert from "node:assert/strict";
import { test } from "node:test";

import { Playhead } from "../../../web_client/media/playhead.js";

/** @returns {{playhead: Playhead, sent: object[]}} */
function reporting() {
  /** @type {object[]} */
  const sent = [];
  return { playhead: new Playhead((report) => sent.push(report)), sent };
}

test("a chunk is reported with how long its first picture waited, where that is known", () => {
  const { playhead, sent } = reporting();
  playhead.seen(3, 500, 12.3456);
  playhead.seen(4, 600, null);
  playhead.seen(5, 700, -1);
  assert.deepEqual(sent, [
    { chunk: 3, pts_us: 500, waited_us: 12_346 }, { chunk: 4, pts_us: 600 }, { chunk: 5, pts_us: 700, waited_us: 0 },
  ]);
});

test("before a command the newest picture is told, without a wait that was told already", () => {
  const { playhead, sent } = reporting();
  playhead.tell();
  assert.deepEqual(sent, [], "nothing was seen yet");
  playhead.seen(3, 500, 10);
  playhead.shown(450);
  playhead.tell();
  playhead.shown(550);
  playhead.tell();
  assert.deepEqual(sent.slice(1), [{ chunk: 3, pts_us: 500 }, { chunk: 3, pts_us: 550 }]);
});

test("what was shown of chunks that are made again is not told, and what was before them is", () => {
  const { playhead, sent } = reporting();
  playhead.seen(3, 500, 10);
  playhead.returned(3);
  playhead.tell();
  assert.deepEqual(sent.at(-1), { chunk: 3, pts_us: 500 });
  playhead.returned(2);
  playhead.shown(600);
  playhead.tell();
  assert.equal(sent.length, 2);
});
