import assert from "node:assert/strict";
import { test } from "node:test";

import { CHOICES, ended, keepChoice, newTransportChoice, nextTransport, opened, recallChoice } from "../../../web_client/transport/transport_choice.js";

const BROKEN = { wasOpen: true, isBroken: true };
const NEVER_OPEN = { wasOpen: false, isBroken: true };
const AWAY = { wasOpen: false, isBroken: false };
const LEFT = { wasOpen: true, isBroken: false };

test("WebRTC comes first", () => {
  assert.equal(nextTransport(newTransportChoice("auto")), "webrtc");
});

test("what breaks, or never opens, gives way to WebSocket, which then stays", () => {
  for (const end of [BROKEN, NEVER_OPEN]) {
    let route = ended(newTransportChoice("auto"), "webrtc", end);
    assert.equal(nextTransport(route), "websocket");
    route = opened(route, "websocket");
    for (const later of [LEFT, AWAY]) {
      route = ended(route, "websocket", later);
      assert.equal(nextTransport(route), "websocket", "it has failed where WebSocket did not");
    }
  }
});

test("where neither gets through the server is away, and WebRTC comes first again", () => {
  const suspect = ended(newTransportChoice("auto"), "webrtc", BROKEN);
  assert.equal(nextTransport(ended(suspect, "websocket", AWAY)), "webrtc");
});

test("an end that the server has a reason for is nobody's failure", () => {
  assert.equal(nextTransport(ended(newTransportChoice("auto"), "webrtc", LEFT)), "webrtc");
});

test("what a person chose is what is taken, whatever breaks", () => {
  for (const choice of /** @type {const} */ (["webrtc", "websocket"])) {
    const route = opened(ended(newTransportChoice(choice), choice, BROKEN), choice);
    assert.equal(nextTransport(route), choice);
  }
});

test("no order of events leads anywhere but to one of the two", () => {
  const events = [
    (/** @type {any} */ route) => ended(route, nextTransport(route), BROKEN),
    (/** @type {any} */ route) => ended(route, nextTransport(route), AWAY),
    (/** @type {any} */ route) => ended(route, nextTransport(route), LEFT),
    (/** @type {any} */ route) => opened(route, nextTransport(route)),
  ];
  let seed = 1;
  for (const choice of CHOICES) {
    let route = newTransportChoice(choice);
    for (let step = 0; step < 300; step += 1) {
      seed = (seed * 48271) % 2147483647;
      route = events[seed % events.length](route);
      assert.ok(["webrtc", "websocket"].includes(nextTransport(route)));
      assert.equal(route.choice, choice);
    }
  }
});

test("the choice is kept, the address goes before it, and what nobody knows is automatic", () => {
  const kept = new Map();
  const storage = /** @type {any} */ ({
    getItem: (/** @type {string} */ key) => kept.get(key) ?? null,
    setItem: (/** @type {string} */ key, /** @type {string} */ value) => kept.set(key, value),
  });
  assert.equal(recallChoice(null, storage), "auto");
  keepChoice("websocket", storage);
  assert.equal(recallChoice(null, storage), "websocket");
  assert.equal(recallChoice("webrtc", storage), "webrtc");
  assert.equal(recallChoice("pigeon", storage), "websocket");
});
