import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { bindingsOf } from "../../../web_client/input/bindings.js";
import { findDirections, HeldKeys, listenToKeyboard } from "../../../web_client/input/keys.js";

const MOVE = { name: "move", merge: "edges", keys: ["wait", "up", "down", "left", "right"] };

/** @type {string[]} */
let edges;
/** @type {number} */
let released;
/** @type {EventTarget} */
let window;
/** @type {EventTarget & {hidden: boolean}} */
let document;
/** @type {HeldKeys} */
let held;

beforeEach(() => {
  edges = [];
  released = 0;
  window = new EventTarget();
  document = Object.assign(new EventTarget(), { hidden: false });
  held = new HeldKeys(({ control, key }, edge) => edges.push(`${control} ${key} ${edge}`));
  held.setTargets(findDirections([MOVE]));
  const releaseAll = () => void (held.forget() && (released += 1));
  const { codes } = bindingsOf([MOVE]);
  listenToKeyboard({ window, document, held, releaseAll, meaningOf: (code) => codes.get(code) });
});

function key(/** @type {string} */ type, /** @type {string} */ code, more = {}) {
  const event = Object.assign(new Event(type, { cancelable: true }), { code, key: code, ...more });
  window.dispatchEvent(event);
  return event;
}

test("arrows and WASD mean the same", () => {
  const { codes } = bindingsOf([MOVE]);
  const met = ["KeyW", "KeyA", "KeyS", "KeyD"].map((code) => codes.get(code));
  assert.deepEqual(met, ["up", "left", "down", "right"]);
  assert.equal(codes.get("ArrowLeft"), "left");
  assert.equal(codes.get("KeyQ"), undefined);
});

test("directions are found in whatever the program calls them", () => {
  const drive = { name: "drive", merge: "edges", keys: ["forward", "back", "left", "right"] };
  assert.deepEqual(findDirections([drive]).get("down"), { control: "drive", key: "back" });
  assert.equal(findDirections([{ name: "gain", merge: "sum", keys: [] }]).size, 0);
});

test("a key is pressed once and released once, however often it repeats", () => {
  key("keydown", "KeyA");
  key("keydown", "KeyA", { repeat: true });
  key("keydown", "KeyA", { repeat: true });
  key("keyup", "KeyA");
  key("keyup", "KeyA");
  assert.deepEqual(edges, ["move left press", "move left release"]);
});

test("a direction is let go when the last of its keys is", () => {
  key("keydown", "KeyW");
  key("keydown", "ArrowUp");
  key("keyup", "KeyW");
  assert.deepEqual(edges, ["move up press"]);
  key("keyup", "ArrowUp");
  assert.deepEqual(edges, ["move up press", "move up release"]);
});

test("two directions are held side by side, in the order of their presses", () => {
  key("keydown", "KeyW");
  key("keydown", "KeyA");
  assert.deepEqual(held.held, ["up", "left"]);
  key("keyup", "KeyW");
  assert.deepEqual(edges, ["move up press", "move left press", "move up release"]);
});

test("walking keeps the page from scrolling; other keys are left alone", () => {
  assert.equal(key("keydown", "ArrowDown").defaultPrevented, true);
  assert.equal(key("keydown", "ArrowDown", { repeat: true }).defaultPrevented, true);
  assert.equal(key("keydown", "Tab").defaultPrevented, false);
});

test("typing never walks", () => {
  const field = new EventTarget();
  Object.assign(field, { closest: () => field });
  const event = Object.assign(new Event("keydown", { cancelable: true }), { code: "KeyW" });
  Object.defineProperty(event, "target", { value: field });
  window.dispatchEvent(event);
  assert.deepEqual(edges, []);
  assert.equal(event.defaultPrevented, false);
});

test("a key that goes up in the text field is still let go", () => {
  key("keydown", "KeyW");
  key("keyup", "KeyW", { isComposing: false });
  assert.deepEqual(edges.at(-1), "move up release");
});

test("shortcuts of the browser never walk", () => {
  for (const chord of ["ctrlKey", "metaKey", "altKey", "isComposing"]) {
    key("keydown", "KeyA", { [chord]: true });
  }
  assert.deepEqual(edges, []);
});

for (const [what, happens] of /** @type {[string, () => void][]} */ ([
  ["the window loses the keyboard", () => window.dispatchEvent(new Event("blur"))],
  ["the page is left", () => window.dispatchEvent(new Event("pagehide"))],
  ["the system's key goes down", () => key("keydown", "MetaLeft", { key: "Meta" })],
  [
    "the page is hidden",
    () => {
      document.hidden = true;
      document.dispatchEvent(new Event("visibilitychange"));
    },
  ],
])) {
  test(`everything is let go when ${what}`, () => {
    key("keydown", "KeyW");
    happens();
    assert.equal(released, 1);
    assert.deepEqual(held.held, []);
    key("keyup", "KeyW");
    assert.deepEqual(edges, ["move up press"], "the late release is not said twice");
  });
}

test("a page that comes back to sight lets nothing go", () => {
  key("keydown", "KeyW");
  document.dispatchEvent(new Event("visibilitychange"));
  assert.equal(released, 0);
});

test("letting go of nothing says nothing", () => {
  window.dispatchEvent(new Event("blur"));
  assert.equal(released, 0);
});

test("a program without directions hears no keys", () => {
  held.setTargets(new Map());
  key("keydown", "KeyW");
  assert.deepEqual(edges, []);
});

test("space presses a button that has the focus, and plays otherwise", () => {
  const play = { name: "play", merge: "edges", keys: ["jump"], bindings: { jump: ["Space"] } };
  const { codes, targets } = bindingsOf([play]);
  const other = new EventTarget();
  held.setTargets(targets);
  const meaningOf = (/** @type {string} */ code) => codes.get(code);
  listenToKeyboard({ window: other, document, held, releaseAll: () => {}, meaningOf });
  const button = { closest: (/** @type {string} */ what) => (what.includes("button") ? {} : null) };
  for (const target of [button, { closest: () => null }]) {
    const event = Object.assign(new Event("keydown", { cancelable: true }), { code: "Space" });
    Object.defineProperty(event, "target", { value: target });
    other.dispatchEvent(event);
    assert.equal(event.defaultPrevented, target !== button);
  }
  assert.deepEqual(edges, ["play jump press"]);
});
