// Which tab has a session, where the browser has no locks: pages over plain http, and some others.

const CHANNEL = "reverie.tabs";
const ANSWER_LIMIT_MS = 300;

/**
 * The tabs of one browser, which ask each other who has a session. A tab that is reloaded hears
 * nobody, for the page before it is gone; one that was duplicated hears the first one.
 */
export class Tabs {
  #channel;
  #waitMs;
  /** @type {string | null} the session that this tab has */
  #held = null;
  /** @type {{session: string, nonce: number, isTaken: boolean} | null} what this tab asks now */
  #asking = null;

  /** @param {BroadcastChannel | null} channel null: nobody can be asked @param {number} [waitMs] */
  constructor(channel, waitMs = ANSWER_LIMIT_MS) {
    this.#channel = channel;
    this.#waitMs = waitMs;
    if (channel !== null) channel.onmessage = ({ data }) => this.#onMessage(data);
  }

  /** @returns {Tabs} those of this browser */
  static ofBrowser() {
    try {
      return new Tabs(new BroadcastChannel(CHANNEL));
    } catch {
      return new Tabs(null);
    }
  }

  /** @param {string} session @returns {Promise<boolean>} whether it is this tab's now */
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

  /** Have a session that was opened here: nobody else can. @param {string} session */
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
      asking.isTaken = true; // two ask at once: the other one has the lower number
    }
  }
}
