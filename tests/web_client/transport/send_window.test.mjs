import assert from "node:assert/strict";
import { test } from "node:test";

import { SendWindow } from "../../../web_client/transport/send_window.js";

test("so many may be on their way, and each answer makes room", async () => {
  const window = new SendWindow(2, 100);
  window.sent("a");
  assert.ok(window.hasRoom(0));
  window.sent("b");
  assert.ok(!window.hasRoom(0));
  const room = window.next();
  assert.equal(window.answered("other"), false);
  assert.equal(window.answered(null), false);
  assert.equal(window.answered("a"), true);
  await room;
  assert.ok(window.hasRoom(0));
});

test("a line that is full takes nothing more", () => {
  const window = new SendWindow(2, 100);
  assert.ok(window.hasRoom(100));
  assert.ok(!window.hasRoom(101));
});

test("another line waits for nobody", async () => {
  const window = new SendWindow(1, 100);
  window.sent("a");
  const room = window.next();
  window.clear();
  await room;
  assert.ok(window.hasRoom(0));
});
