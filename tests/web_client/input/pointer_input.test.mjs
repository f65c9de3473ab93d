import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { PointerInput } from "../../../web_client/input/pointer_input.js";

/** @type {string[]} */
let did;
/** @type {(() => void)[]} */
let waiting;
/** @type {PointerInput} */
let hand;

beforeEach(() => {
  did = [];
  waiting = [];
  const held = {
    press: (/** @type {string} */ _, /** @type {string} */ meaning) => did.push(`press ${meaning}`) > 0,
    release: () => void did.push("release"),
  };
  hand = new PointerInput(held, ({ x, y }) => did.push(`${x},${y}`), (act) => waiting.push(act));
});

const BUTTONS = new Map([[0, "attack"], [2, "use"]]);
const wait = () => waiting.splice(0).forEach((act) => act());

test("where nothing is dragged a button presses at once", () => {
  hand.setMeanings(BUTTONS, false);
  hand.down("a", 2, { x: 0, y: 0 });
  hand.move("a", { x: 50, y: 0 });
  assert.deepEqual(did, ["press use"]);
  hand.up("a");
  assert.deepEqual(did, ["press use", "release"]);
});

test("a tap is a short press, also where pictures can be dragged", () => {
  hand.setMeanings(BUTTONS, true);
  hand.down("a", 0, { x: 0, y: 0 });
  hand.move("a", { x: 3, y: 2 });
  assert.deepEqual(did, []);
  hand.up("a");
  wait();
  assert.deepEqual(did, ["press attack", "release"]);
});

test("a swipe drags and presses nothing", () => {
  hand.setMeanings(BUTTONS, true);
  hand.down("a", 0, { x: 10, y: 10 });
  hand.move("a", { x: 30, y: 10 });
  hand.move("a", { x: 30, y: 5 });
  wait();
  hand.up("a");
  assert.deepEqual(did, ["20,0", "0,-5", "release"]);
});

test("who holds still first both presses and drags", () => {
  hand.setMeanings(BUTTONS, true);
  hand.down("a", 0, { x: 0, y: 0 });
  wait();
  hand.move("a", { x: 1, y: 0 });
  hand.up("a");
  assert.deepEqual(did, ["press attack", "1,0", "release"]);
});

test("a button that means nothing drags, if it is the first one", () => {
  hand.setMeanings(new Map(), true);
  hand.down("a", 0, { x: 0, y: 0 });
  hand.move("a", { x: 1, y: 1 });
  hand.down("b", 1, { x: 0, y: 0 });
  hand.move("b", { x: 9, y: 9 });
  assert.deepEqual(did, ["1,1"]);
  assert.equal(hand.uses(2), false, "its menu is left alone");
});

test("a hand that was forgotten says nothing later", () => {
  hand.setMeanings(BUTTONS, true);
  hand.down("a", 0, { x: 0, y: 0 });
  hand.forget();
  wait();
  hand.up("a");
  assert.deepEqual(did, []);
});
