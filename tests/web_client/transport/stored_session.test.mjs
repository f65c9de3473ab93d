import assert from "node:assert/strict";
import { after, test } from "node:test";

import { PageStorage } from "../../../web_client/transport/storage.js";
import { Tabs } from "../../../web_client/transport/tabs.js";
import { StoredSession } from "../../../web_client/transport/stored_session.js";

// The limits inside are timers that do not keep node alive by themselves.
const alive = setInterval(() => {}, 1000);
after(() => clearInterval(alive));

const TICKET = { id: "s1", token: "t1", model: "pocket" };

/** What two tabs of one browser share. */
class Locks {
  /** @type {Set<string>} */
  #taken = new Set();
  /** @type {(() => void)[]} */
  #waiting = [];

  async request(/** @type {string} */ name, /** @type {any} */ { signal }, /** @type {any} */ held) {
    while (this.#taken.has(name)) {
      await new Promise((resolve, reject) => {
        this.#waiting.push(() => resolve(undefined));
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    }
    this.#taken.add(name);
    await held();
    this.#taken.delete(name);
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

/** What each tab has for itself, and a duplicated one gets a copy of. */
class Storage {
  /** @param {Map<string, string>} items */
  constructor(items = new Map()) {
    this.items = items;
  }
  getItem(/** @type {string} */ key) {
    return this.items.get(key) ?? null;
  }
  setItem(/** @type {string} */ key, /** @type {string} */ value) {
    this.items.set(key, value);
  }
  removeItem(/** @type {string} */ key) {
    this.items.delete(key);
  }
}

const tab = (/** @type {any} */ storage, /** @type {any} */ locks, tabs = new Tabs(null)) =>
  new StoredSession(new PageStorage(() => storage), locks, tabs);

test("a new tab has no session", async () => {
  assert.equal(await tab(new Storage(), new Locks()).recall(), null);
});

test("a tab that is reloaded has its session again", async () => {
  const storage = new Storage();
  await tab(storage, new Locks()).keep(TICKET);
  assert.deepEqual(await tab(storage, new Locks()).recall(), TICKET); // the browser freed its locks
});

test("a duplicated tab leaves the session to the first one", async () => {
  const storage = new Storage();
  const locks = new Locks();
  await tab(storage, locks).keep(TICKET);
  const copy = tab(new Storage(new Map(storage.items)), locks);
  assert.equal(await copy.recall(), null);
});

test("a session that was dropped is free for the next", async () => {
  const storage = new Storage();
  const locks = new Locks();
  const first = tab(storage, locks);
  await first.keep(TICKET);
  const items = new Map(storage.items);
  first.drop();
  assert.equal(storage.getItem("reverie.session"), null);
  assert.deepEqual(await tab(new Storage(items), locks).recall(), TICKET);
});

test("a tab that is reloaded knows what its world was last", async () => {
  const storage = new Storage();
  const first = tab(storage, new Locks());
  first.note({ model: "pocket", prompt: "nothing is kept before there is a session" });
  await first.keep(TICKET);
  const opening = { model: "pocket", program: "world", prompt: "a bog" };
  first.note({ ...opening, prompt: "a town" });
  first.note(opening);
  assert.deepEqual(await tab(storage, new Locks()).recall(), { ...TICKET, opening });
});

const WAIT_MS = 60;

test("without locks a tab that is reloaded has its session again", async () => {
  const storage = new Storage();
  await tab(storage, undefined).keep(TICKET);
  assert.deepEqual(await tab(storage, undefined).recall(), TICKET);
});

test("without locks a duplicated tab leaves the session to the first one", async () => {
  const channels = [1, 2, 3].map(() => new BroadcastChannel("reverie.test"));
  const [first, second, third] = channels.map((each) => new Tabs(/** @type {any} */ (each), WAIT_MS));
  const storage = new Storage();
  const store = tab(storage, undefined, first);
  await store.keep(TICKET);
  const copy = new Storage(new Map(storage.items));
  assert.equal(await tab(copy, undefined, second).recall(), null);
  store.drop();
  assert.deepEqual(await tab(copy, undefined, third).recall(), TICKET, "the first one is gone");
  for (const channel of channels) channel.close();
});

test("of two copies that ask at once one has the session", async () => {
  const channels = [1, 2].map(() => new BroadcastChannel("reverie.test.twice"));
  const tabs = channels.map((each) => new Tabs(/** @type {any} */ (each), WAIT_MS));
  const taken = await Promise.all(tabs.map((each) => each.take("s1")));
  assert.deepEqual(taken.toSorted(), [false, true]);
  for (const channel of channels) channel.close();
});

test("locks that the browser refuses to a page are as good as none", async () => {
  const locks = { request: () => Promise.reject(Object.assign(new Error(), { name: "SecurityError" })) };
  const storage = new Storage();
  await tab(storage, locks).keep(TICKET);
  assert.deepEqual(await tab(storage, locks).recall(), TICKET);
});

test("a browser that keeps nothing is played without remembering", async () => {
  const refuse = () => {
    throw new DOMException("denied", "SecurityError");
  };
  const full = { getItem: () => null, setItem: refuse, removeItem: () => {} };
  for (const find of [refuse, () => full]) {
    const storage = new PageStorage(find);
    const store = new StoredSession(storage, undefined, new Tabs(null));
    assert.equal(store.remembers, false);
    await store.keep(TICKET);
    store.note({ prompt: "a bog" });
    assert.deepEqual(await store.recall(), { ...TICKET, opening: { prompt: "a bog" } }, "this page");
  }
  const filling = { ...full, setItem: (/** @type {string} */ key) => key === "reverie.probe" || refuse() };
  const storage = new PageStorage(() => filling);
  storage.setItem("a", "1");
  assert.equal(storage.getItem("a"), "1");
});

test("another tab is given a session of its own, and what this one has become", async () => {
  const mine = new Storage();
  const other = new Storage();
  const store = tab(mine, new Locks());
  await store.keep(TICKET);
  store.note({ prompt: "a lake" });
  store.bequeath(/** @type {any} */ (other), { id: "s2", token: "t2", model: "pocket" });
  const given = await tab(other, new Locks()).recall();
  assert.deepEqual(given, { id: "s2", token: "t2", model: "pocket", opening: { prompt: "a lake" } });
  assert.equal(JSON.parse(mine.getItem("reverie.session") ?? "").id, "s1");
});
