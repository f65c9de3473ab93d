// What the page stores in the browser. Where a browser stores nothing (blocked cookies, a private
// window, a full disk) a reload forgets the session; all else works.

/** @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} Keeps */

/** A `Storage` that never throws: values that the browser does not store are kept in memory. */
export class PageStorage {
  /** @type {Keeps | null} */
  #kept = null;
  /** @type {Map<string, string>} */
  #own = new Map();

  /** @param {() => Keeps} find throws where the browser stores nothing */
  constructor(find) {
    try {
      const found = find();
      found.setItem("reverie.probe", "");
      found.removeItem("reverie.probe");
      this.#kept = found;
    } catch {
      // `limits.js` tells the person
    }
  }

  /** Whether values outlive the page. */
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

  /** @template T @param {(kept: Keeps) => T} act @returns {T | undefined} undefined: it failed */
  #tried(act) {
    try {
      return this.#kept === null ? undefined : act(this.#kept);
    } catch {
      return undefined;
    }
  }
}
