// What the page keeps in the browser. One that keeps nothing for this page (cookies are blocked, a
// private window, a full disk) loses what is remembered over a reload, and nothing else.

/** @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} Keeps */

/** A `Storage` that never throws: what the browser does not keep, it keeps until the page goes. */
export class PageStorage {
  /** @type {Keeps | null} */
  #kept = null;
  /** @type {Map<string, string>} */
  #own = new Map();

  /** @param {() => Keeps} find throws where the browser keeps nothing */
  constructor(find) {
    try {
      const found = find();
      found.setItem("reverie.probe", "");
      found.removeItem("reverie.probe");
      this.#kept = found;
    } catch {
      // said to the person by `limits.js`
    }
  }

  /** Whether it outlives the page. */
  get isLasting() {
    return this.#kept !== null;
  }

  /** @param {string} key @returns {string | null} */
  getItem(key) {
    return this.#own.get(key) ?? this.#tried((kept) => kept.getItem(key)) ?? null;
  }

  /** @param {string} key @param {string} value */
  setItem(key, value) {
    const isKept = this.#tried((kept) => (kept.setItem(key, value), true));
    if (isKept) this.#own.delete(key);
    else this.#own.set(key, value);
  }

  /** @param {string} key */
  removeItem(key) {
    this.#own.delete(key);
    this.#tried((kept) => kept.removeItem(key));
  }

  /** @template T @param {(kept: Keeps) => T} act @returns {T | undefined} undefined: not done */
  #tried(act) {
    try {
      return this.#kept === null ? undefined : act(this.#kept);
    } catch {
      return undefined;
    }
  }
}
