// Whether a peer is still there: a small clock without a clock, for time comes in as an argument.
// A browser tells of a dead peer after half a minute at best; this does within seconds.

/** @typedef {"ping" | "ask" | "restart" | "dead"} Duty what is to be done now */

const PING_EVERY_MS = 1000;
/** How long the other side may be silent, pictures may be missing, or a first word may take. */
export const PATIENCE_MS = 5000;
// Half of it without any picture: ask for one that can be decoded by itself.
const ASK_AFTER_MS = 2500;
// So long without a word while the network says that it has changed: look for another way.
const RESTART_AFTER_MS = 1500;
// This watch is kept several times a second; a pause of this length was a sleep.
const ASLEEP_MS = 2500;
const GRACE_MS = 2000;

export class Watchdog {
  #heardAtMs;
  #pingedAtMs = -Infinity;
  /** @type {number | null} since when pictures are due, and none is here */
  #dueSinceMs = null;
  #asked = false;
  #restarted = false;
  #lookedAtMs;

  /** @param {number} nowMs */
  constructor(nowMs) {
    this.#heardAtMs = nowMs;
    this.#lookedAtMs = nowMs;
  }

  /** The other side said something. @param {number} nowMs */
  heard(nowMs) {
    this.#heardAtMs = nowMs;
    this.#restarted = false;
  }

  /** The server has sent a picture. @param {number} nowMs */
  sent(nowMs) {
    this.#dueSinceMs ??= nowMs;
  }

  /** A picture is on the screen, or nobody looks. */
  presented() {
    this.#dueSinceMs = null;
    this.#asked = false;
  }

  /**
   * @param {number} nowMs
   * @param {{isOpen: boolean, isCut: boolean}} link isCut: the browser says that no word gets through
   * @returns {Duty[]}
   */
  duties(nowMs, { isOpen, isCut }) {
    this.#forgetSleep(nowMs);
    const silentMs = nowMs - this.#heardAtMs;
    const missingMs = this.#dueSinceMs === null ? 0 : nowMs - this.#dueSinceMs;
    if (silentMs > PATIENCE_MS || missingMs > PATIENCE_MS) return ["dead"];
    /** @type {Duty[]} */
    const duties = [];
    if (isOpen && nowMs - this.#pingedAtMs >= PING_EVERY_MS) {
      this.#pingedAtMs = nowMs;
      duties.push("ping");
    }
    if (missingMs > ASK_AFTER_MS && !this.#asked) {
      this.#asked = true;
      duties.push("ask");
    }
    if (isOpen && isCut && silentMs > RESTART_AFTER_MS && !this.#restarted) {
      this.#restarted = true;
      duties.push("restart");
    }
    return duties;
  }

  /** A page or a machine that was asleep has missed what was said. @param {number} nowMs */
  #forgetSleep(nowMs) {
    const sleptMs = nowMs - this.#lookedAtMs;
    this.#lookedAtMs = nowMs;
    if (sleptMs < ASLEEP_MS) return;
    this.#heardAtMs = Math.max(this.#heardAtMs, nowMs - PATIENCE_MS + GRACE_MS);
    if (this.#dueSinceMs !== null) this.#dueSinceMs = nowMs;
  }
}
