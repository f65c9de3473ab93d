// Which session is this tab's own. A tab that is duplicated gets a copy of the first one's storage;
// the lock, which only one tab can hold, tells them apart.

import { after } from "./requests.js";

/**
 * @typedef {object} StoredTicket what lets a client come back
 * @property {string} id
 * @property {string} token
 * @property {string} model
 * @property {string} [owner] whose session it is, which counts its places
 * @property {string} [owner] whose session it is
 * @property {{model?: string, program?: string, prompt?: string}} [opening] what the world was last
 */

const KEY = "reverie.session";
// A reload asks before the page it replaces has let go of its lock.
const LOCK_WAIT_MS = 700;

/** Keeps the tab's session over reloads. Without locks (plain http) the tabs ask each other. */
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

  /** @returns {Promise<StoredTicket | null>} the session that this tab had, unless another tab has it */
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

  /** Note what the session has become. @param {StoredTicket["opening"]} opening */
  note(opening) {
    const stored = this.#storage.getItem(KEY);
    if (stored === null) return;
    const noted = JSON.stringify({ ...JSON.parse(stored), opening });
    if (noted !== stored) this.#storage.setItem(KEY, noted);
  }

  /**
   * Give another tab a session that is like this tab's own.
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
        resolve(error?.name === "SecurityError" ? null : false); // there are none for this page
      });
    });
  }
}
