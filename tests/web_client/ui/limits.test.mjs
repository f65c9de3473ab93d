import assert from "node:assert/strict";
import { test } from "node:test";

import { deviceLimit, limitsText, soundLimit } from "../../../web_client/ui/limits.js";

const ALL = { isSecure: true, remembers: true, hasDevices: true };

test("a browser that allows everything is told nothing", () => {
  assert.equal(limitsText(ALL), "");
  assert.equal(deviceLimit("camera", ALL), null);
});

test("a browser that remembers nothing is told what a reload does", () => {
  assert.match(limitsText({ ...ALL, remembers: false }), /a reload begins a new world/);
});

test("over plain http camera and sound are said to need https", () => {
  const plain = { ...ALL, isSecure: false, hasDevices: false };
  for (const device of /** @type {const} */ (["camera", "microphone"])) {
    assert.match(deviceLimit(device, plain) ?? "", new RegExp(`^The ${device} needs https`));
    assert.doesNotMatch(deviceLimit(device, { ...plain, isSecure: true }) ?? "", /https/);
  }
  assert.match(soundLimit(false), /needs https/);
});
