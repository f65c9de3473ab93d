// When each piece of sound is due, on the clock of the pictures. Time is passed in.

// A picture that is shown a little early or late does not move the clock; a jump does.
const JUMP_MS = 120;
const FOLLOW = 0.1;
// Pieces that are this close to each other are played without a gap.
const GAP_MS = 60;
/** How long sound waits when no picture was shown yet. */
const ALONE_MS = 100;
const LATE_MS = 250;

export class SoundClock {
  /** @type {number | null} the moment of media time zero */
  #zeroMs = null;
  /** @type {number | null} where the newest piece ends */
  #endMs = null;

  /** A picture was shown. @param {number} ptsUs @param {number} atMs */
  follow(ptsUs, atMs) {
    const zeroMs = atMs - ptsUs / 1000;
    const isNear = this.#zeroMs !== null && Math.abs(zeroMs - this.#zeroMs) < JUMP_MS;
    this.#zeroMs = isNear ? Number(this.#zeroMs) + (zeroMs - Number(this.#zeroMs)) * FOLLOW : zeroMs;
  }

  /**
   * @param {number} ptsUs @param {number} durationUs @param {number} nowMs
   * @returns {number | null} when to play a piece; null when it is too late for that
   */
  place(ptsUs, durationUs, nowMs) {
    this.#zeroMs ??= nowMs + ALONE_MS - ptsUs / 1000;
    const dueMs = this.#zeroMs + ptsUs / 1000;
    if (dueMs < nowMs - LATE_MS) return null;
    const follows = this.#endMs !== null && Math.abs(dueMs - this.#endMs) < GAP_MS;
    const atMs = Math.max(nowMs, follows ? Number(this.#endMs) : dueMs);
    this.#endMs = atMs + durationUs / 1000;
    return atMs;
  }

  /** The next piece does not follow the one before. */
  cut() {
    this.#endMs = null;
  }

  /** Another stream. */
  clear() {
    this.#zeroMs = null;
    this.#endMs = null;
  }
}
