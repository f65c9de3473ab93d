import assert from "node:assert/strict";
import { test } from "node:test";

import { PATIENCE_MS, Watchdog } from "../../../web_client/transport/watchdog.js";

const STEP_MS = 250;
const OPEN = { isOpen: true, isCut: false };

/** Watch from one moment to another, and list what was to be done when. */
function watch(/** @type {Watchdog} */ watchdog, /** @type {number} */ fromMs, /** @type {number} */ toMs, link = OPEN, each = (/** @type {number} */ _ms) => {}) {
  const found = [];
  for (let ms = fromMs; ms <= toMs; ms += STEP_MS) {
    each(ms);
    for (const duty of watchdog.duties(ms, link)) found.push([duty, ms]);
  }
  return found;
}

const namesOf = (/** @type {any[]} */ duties) => [...new Set(duties.map(([name]) => name))];

test("an open link is pinged every second, and one that answers lives", () => {
  const watchdog = new Watchdog(0);
  const duties = watch(watchdog, 0, 20_000, OPEN, (ms) => watchdog.heard(ms));
  assert.deepEqual(namesOf(duties), ["ping"]);
  assert.equal(duties.length, 21);
});

test("a link that does not open in time is dead", () => {
  const duties = watch(new Watchdog(0), 0, 8000, { isOpen: false, isCut: false });
  assert.deepEqual(duties[0], ["dead", PATIENCE_MS + STEP_MS]);
});

test("silence is the end after five seconds", () => {
  const watchdog = new Watchdog(0);
  watchdog.heard(1000);
  assert.deepEqual(watch(watchdog, 1000, 9000).find(([name]) => name === "dead"), ["dead", 6250]);
});

test("pictures that were sent and are not seen: ask once, then give it up", () => {
  const watchdog = new Watchdog(0);
  const duties = watch(watchdog, 0, 6000, OPEN, (ms) => {
    watchdog.heard(ms);
    watchdog.sent(ms);
  });
  const times = (/** @type {string} */ wanted) => duties.filter(([name]) => name === wanted);
  assert.equal(times("ask").length, 1);
  assert.equal(times("dead")[0][1], PATIENCE_MS + STEP_MS);
});

test("a world that sends nothing is no dead link", () => {
  const watchdog = new Watchdog(0);
  watchdog.sent(0);
  watchdog.presented();
  assert.deepEqual(namesOf(watch(watchdog, 0, 60_000, OPEN, (ms) => watchdog.heard(ms))), ["ping"]);
});

test("a cut line looks for another way once, while there is still patience", () => {
  const watchdog = new Watchdog(0);
  const duties = watch(watchdog, 0, 6000, { isOpen: true, isCut: true });
  assert.equal(duties.filter(([name]) => name === "restart").length, 1);
  assert.equal(duties.at(-1)?.[0], "dead");
});

test("what was said while this machine slept was not heard, and is no silence", () => {
  const watchdog = new Watchdog(0);
  watchdog.duties(0, OPEN);
  watchdog.sent(0);
  assert.ok(!watchdog.duties(3_600_000, OPEN).includes("dead"));
  const after = watch(watchdog, 3_600_000, 3_610_000);
  assert.ok(namesOf(after).includes("dead"), "but for a while only");
});
