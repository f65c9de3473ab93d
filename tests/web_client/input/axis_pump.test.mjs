import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { AxisPump } from "../../../web_client/input/axis_pump.js";

const X = { name: "x", low: -100, high: 100, label: "X" };
const Y = { name: "y", low: 0, high: 1, label: "Y" };

/** @type {Record<string, number>[]} */
let sent;
/** @type {(() => void)[]} */
let waiting;
/** @type {AxisPump} */
let pump;

beforeEach(() => {
  sent = [];
  waiting = [];
  pump = new AxisPump((action) => `id-${sent.push(action)}`, (act) => waiting.push(act));
});

const rest = () => waiting.splice(0).forEach((act) => act());

test("the first movement goes at once, and those within a rest go together after it", () => {
  pump.move(X, 0.1);
  assert.deepEqual(sent, [{ x: 20 }]);
  pump.move(X, 0.1);
  pump.move(X, 0.05);
  pump.move(Y, 0.5);
  assert.equal(sent.length, 1);
  rest();
  assert.deepEqual(sent[1], { x: 30, y: 0.5 });
  rest();
  assert.equal(sent.length, 2, "nothing moved since");
});

test("no movement is more than the program takes at once, nor one that moves nothing", () => {
  pump.move(X, 5);
  pump.move(Y, -0.5);
  rest();
  assert.deepEqual(sent, [{ x: 100 }]);
});

test("while the server is busy movements add up here, and go when one has acted", () => {
  for (let count = 0; count < 12; count++) {
    pump.move(X, 0.01);
    rest();
  }
  assert.equal(sent.length, 8);
  pump.settled("somebody else's");
  assert.equal(sent.length, 8);
  pump.settled("id-1");
  assert.deepEqual(sent[8], { x: 8 });
});

test("what was moved before a break is forgotten", () => {
  pump.move(X, 0.1);
  pump.move(X, 0.1);
  pump.forget();
  rest();
  assert.equal(sent.length, 1);
});

test("without a server movements come to nothing, and to no waiting", () => {
  const away = new AxisPump(() => null, (act) => waiting.push(act));
  for (let count = 0; count < 20; count++) {
    away.move(X, 0.1);
    rest();
  }
  assert.equal(waiting.length, 0);
});

test("a movement says whether it is the first, with none before it that has yet to act", () => {
  /** @type {boolean[]} */
  const firsts = [];
  const told = new AxisPump((_, isFirst) => `id-${firsts.push(isFirst)}`, (act) => waiting.push(act));
  told.move(X, 0.1);
  rest();
  told.move(X, 0.1);
  told.settled("id-1");
  told.settled("id-2");
  rest();
  told.move(X, 0.1);
  assert.deepEqual(firsts, [true, false, true]);
});
