import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { PointerInput } from "../../../web_client/input/pointer_input.js";

/** @type {string[]} */
let did;
/** @type {(() => void)[]} */
let waiting;
/** @type {PointerInput} */
let pointer;

beforeEach(() => {
  did = [];
  waiting = [];
  const held = {
    press: (/** @type {string} */ _, /** @type {string} */ meaning) => did.push(`press ${meaning}`) > 0,
    release: () => void did.push("release"),
  };
  pointer = new PointerInput(held, ({ x, y }) => did.push(`${x},${y}`), (act) => waiting.push(act));
});

const BUTTONS = new Map([[0, "attack"], [2, "use"]]);
const wait = () => waiting.splice(0).forEach((act) => act());

test("where nothing is dragged a button presses at once", () => {
  pointer.setMeanings(BUTTONS, false);
  pointer.down("a", 2, { x: 0, y: 0 });
  pointer.move("a", { x: 50, y: 0 });
  assert.deepEqual(did, ["press use"]);
  pointer.up("a");
  assert.deepEqual(did, ["press use", "release"]);
});

test("a tap is a short press, also where pictures can be dragged", () => {
  pointer.setMeanings(BUTTONS, true);
  pointer.down("a", 0, { x: 0, y: 0 });
  pointer.move("a", { x: 3, y: 2 });
  assert.deepEqual(did, []);
  pointer.up("a");
  wait();
  assert.deepEqual(did, ["press attack", "release"]);
});

test("a swipe drags and presses nothing", () => {
  pointer.setMeanings(BUTTONS, true);
  pointer.down("a", 0, { x: 10, y: 10 });
  pointer.move("a", { x: 30, y: 10 });
  pointer.move("a", { x: 30, y: 5 });
  wait();
  pointer.up("a");
  assert.deepEqual(did, ["20,0", "0,-5", "release"]);
});

test("who holds still first both presses and drags", () => {
  pointer.setMeanings(BUTTONS, true);
  pointer.down("a", 0, { x: 0, y: 0 });
  wait();
  pointer.move("a", { x: 1, y: 0 });
  pointer.up("a");
  assert.deepEqual(did, ["press attack", "1,0", "release"]);
});

test("a button that means nothing drags, if it is the first one", () => {
  pointer.setMeanings(new Map(), true);
  pointer.down("a", 0, { x: 0, y: 0 });
  pointer.move("a", { x: 1, y: 1 });
  pointer.down("b", 1, { x: 0, y: 0 });
  pointer.move("b", { x: 9, y: 9 });
  assert.deepEqual(did, ["1,1"]);
  assert.equal(pointer.uses(2), false, "its menu is left alone");
});

test("pointer input that was forgotten says nothing later", () => {
  pointer.setMeanings(BUTTONS, true);
  pointer.down("a", 0, { x: 0, y: 0 });
  pointer.forget();
  wait();
  pointer.up("a");
  assert.deepEqual(did, []);
});
