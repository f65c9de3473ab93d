// Detects a dead peer within seconds; a browser reports one after half a minute at best.
// It has no clock of its own: time is passed in.

/** @typedef {"ping" | "ask" | "restart" | "dead"} Duty what the attachment must do now */

const PING_EVERY_MS = 1000;
/** How long the server may be silent, pictures may be missing, or the first message may take. */
export const PATIENCE_MS = 5000;
// After half of it without a picture: ask for a key frame.
const ASK_AFTER_MS = 2500;
// After this long without a message while ICE is disconnected: restart ICE.
const RESTART_AFTER_MS = 1500;
// `duties` is called several times a second; after a pause of this length the page was asleep.
const ASLEEP_MS = 2500;
const GRACE_MS = 2000;

export class Watchdog {
  #heardAtMs;
  #pingedAtMs = -Infinity;
  /** @type {number | null} since when a picture is due and was not shown */
  #dueSinceMs = null;
  #asked = false;
  #restarted = false;
  #lookedAtMs;

  /** @param {number} nowMs */
  constructor(nowMs) {
    this.#heardAtMs = nowMs;
    this.#lookedAtMs = nowMs;
  }

  /** A message came. @param {number} nowMs */
  heard(nowMs) {
    this.#heardAtMs = nowMs;
    this.#restarted = false;
  }

  /** The server has sent a picture. @param {number} nowMs */
  sent(nowMs) {
    this.#dueSinceMs ??= nowMs;
  }

  /** A picture was shown, or none is expected. */
  presented() {
    this.#dueSinceMs = null;
    this.#asked = false;
  }

  /**
   * @param {number} nowMs
   * @param {{isOpen: boolean, isCut: boolean}} link isCut: ICE is disconnected
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

  /** A page that was asleep has missed messages, so it starts with a shorter silence. @param {number} nowMs */
  #forgetSleep(nowMs) {
    const sleptMs = nowMs - this.#lookedAtMs;
    this.#lookedAtMs = nowMs;
    if (sleptMs < ASLEEP_MS) return;
    this.#heardAtMs = Math.max(this.#heardAtMs, nowMs - PATIENCE_MS + GRACE_MS);
    if (this.#dueSinceMs !== null) this.#dueSinceMs = nowMs;
  }
}
