// Which tab owns a session, where the browser has no locks, as over plain http.

const CHANNEL = "reverie.tabs";
const ANSWER_LIMIT_MS = 300;

/**
 * The tabs of one browser, which ask each other for the owner of a session. A reloaded tab gets no
 * answer, because its previous page is gone; a duplicated tab gets one from the original.
 */
export class Tabs {
  #channel;
  #waitMs;
  /** @type {string | null} the session that this tab owns */
  #held = null;
  /** @type {{session: string, nonce: number, isTaken: boolean} | null} the question of this tab, while it waits for answers */
  #asking = null;

  /** @param {BroadcastChannel | null} channel null: no other tab can be asked @param {number} [waitMs] */
  constructor(channel, waitMs = ANSWER_LIMIT_MS) {
    this.#channel = channel;
    this.#waitMs = waitMs;
    if (channel !== null) channel.onmessage = ({ data }) => this.#onMessage(data);
  }

  /** @returns {Tabs} the tabs of this browser */
  static ofBrowser() {
    try {
      return new Tabs(new BroadcastChannel(CHANNEL));
    } catch {
      return new Tabs(null);
    }
  }

  /** @param {string} session @returns {Promise<boolean>} whether this tab owns it now */
  async take(session) {
    if (this.#channel === null) {
      this.#held = session;
      return true;
    }
    const asking = { session, nonce: Math.random(), isTaken: false };
    this.#asking = asking;
    this.#channel.postMessage({ type: "who", session, nonce: asking.nonce });
    await new Promise((resolve) => setTimeout(resolve, this.#waitMs));
    this.#asking = null;
    if (asking.isTaken) return false;
    this.#held = session;
    return true;
  }

  /** Own a session that was opened here, which no other tab can know. @param {string} session */
  have(session) {
    this.#held = session;
  }

  drop() {
    this.#held = null;
  }

  /** @param {{type: string, session: string, nonce?: number}} said */
  #onMessage({ type, session, nonce = 0 }) {
    const asking = this.#asking?.session === session ? this.#asking : null;
    if (type === "mine") {
      if (asking !== null) asking.isTaken = true;
    } else if (this.#held === session || (asking !== null && asking.nonce < nonce)) {
      this.#channel?.postMessage({ type: "mine", session });
    } else if (asking !== null) {
      asking.isTaken = true; // both tabs ask at once, and the one with the lower number gets it
    }
  }
}
