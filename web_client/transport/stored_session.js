// The session of this tab. A duplicated tab gets a copy of the storage of the first one, so a lock,
// which only one tab can hold, decides who owns the session.

import { after } from "./requests.js";

/**
 * @typedef {object} StoredTicket what a client needs to attach again
 * @property {string} id
 * @property {string} token
 * @property {string} model
 * @property {string} [owner] secret of the owner, whose places it counts against
 * @property {{model?: string, program?: string, prompt?: string}} [opening] with which a new session would begin like it
 */

const KEY = "reverie.session";
// A reloaded page asks before its predecessor has released the lock.
const LOCK_WAIT_MS = 700;

/** Keeps the tab's session over reloads. Without locks (plain http) tabs ask each other. */
export class StoredSession {
  #storage;
  #locks;
  #tabs;
  #release = () => {};

  /**
   * @param {import("./storage.js").PageStorage} storage of the tab
   * @param {LockManager | undefined} locks @param {import("./tabs.js").Tabs} tabs
   */
  constructor(storage, locks, tabs) {
    this.#storage = storage;
    this.#locks = locks;
    this.#tabs = tabs;
  }

  /** Whether a reload finds the session again. */
  get remembers() {
    return this.#storage.isLasting;
  }

  /** @returns {Promise<StoredTicket | null>} the session of this tab, unless another tab owns it */
  async recall() {
    const stored = this.#storage.getItem(KEY);
    if (stored === null) return null;
    const ticket = /** @type {StoredTicket} */ (JSON.parse(stored));
    const held = await this.#hold(ticket.id);
    return (held ?? (await this.#tabs.take(ticket.id))) ? ticket : null;
  }

  /** @param {StoredTicket} ticket */
  async keep(ticket) {
    this.drop();
    this.#storage.setItem(KEY, JSON.stringify(ticket));
    this.#tabs.have(ticket.id);
    await this.#hold(ticket.id);
  }

  /** Note with what the session would begin again. @param {StoredTicket["opening"]} opening */
  note(opening) {
    const stored = this.#storage.getItem(KEY);
    if (stored === null) return;
    const noted = JSON.stringify({ ...JSON.parse(stored), opening });
    if (noted !== stored) this.#storage.setItem(KEY, noted);
  }

  /**
   * Store a session for another tab.
   * @param {Storage} storage of the other tab @param {StoredTicket} ticket
   */
  bequeath(storage, ticket) {
    const { opening } = JSON.parse(this.#storage.getItem(KEY) ?? "{}");
    storage.setItem(KEY, JSON.stringify({ ...ticket, opening }));
  }

  drop() {
    this.#storage.removeItem(KEY);
    this.#release();
    this.#release = () => {};
    this.#tabs.drop();
  }

  /** @param {string} id @returns {Promise<boolean | null>} whether this tab has the lock now; null without locks */
  #hold(id) {
    const locks = this.#locks;
    if (locks === undefined) return Promise.resolve(null);
    return new Promise((resolve) => {
      const options = { signal: after(LOCK_WAIT_MS) };
      const held = () =>
        new Promise((release) => {
          this.#release = () => release(undefined);
          resolve(true);
        });
      locks.request(`reverie.session.${id}`, options, held).catch((error) => {
        resolve(error?.name === "SecurityError" ? null : false); // this page may not use locks
      });
    });
  }
}
