// When each picture is due. It has no clock of its own: time is passed in.

/**
 * @typedef {object} Timed
 * @property {number} ptsUs when it is due, on the stream's clock
 * @property {number} durationUs
 * @property {boolean} discontinuity
 */

// A timer that fires this late does not move the anchor.
const TOLERANCE_MS = 20;
// A longer gap in the stream's clock is a jump, which is not waited for.
const JUMP_US = 1_000_000;
// A viewer can fall behind without bound; with more than this waiting, the clock runs faster.
const BACKLOG_US = 1_000_000;
const CATCH_UP = 0.1;

/**
 * Holds pictures until they are due, in order.
 *
 * The clock is anchored at a picture that was shown. A picture that comes too late is shown at once
 * and becomes the anchor, so that those after it keep their distance and no burst follows a pause.
 * @template {Timed} T
 */
export class Pacer {
  /** @type {T[]} */
  #waiting = [];
  /** @type {{ptsUs: number, atMs: number} | null} */
  #anchor = null;
  #endUs = 0;

  get size() {
    return this.#waiting.length;
  }

  /** How much media time waits. */
  get waitingUs() {
    return this.#waiting.reduce((sum, { durationUs }) => sum + durationUs, 0);
  }

  /** @param {T} picture */
  add(picture) {
    this.#waiting.push(picture);
  }

  /**
   * Take the picture that is due at `nowMs`, or return how long to wait for one.
   * @param {number} nowMs
   * @returns {{picture: T, waitMs: 0} | {picture: null, waitMs: number}} Infinity when none waits
   */
  take(nowMs) {
    const head = this.#waiting[0];
    if (head === undefined) return { picture: null, waitMs: Infinity };
    const dueMs = this.#dueMs(head, nowMs);
    if (dueMs > nowMs) return { picture: null, waitMs: dueMs - nowMs };
    this.#waiting.shift();
    const late = nowMs - dueMs > TOLERANCE_MS;
    this.#anchor = { ptsUs: head.ptsUs, atMs: late ? nowMs : dueMs - this.#hurryMs(head) };
    this.#endUs = head.ptsUs + head.durationUs;
    return { picture: head, waitMs: 0 };
  }

  /**
   * Drop waiting pictures that are due before `ptsUs`, and set a new anchor at the next one.
   * @param {number} ptsUs
   * @returns {T[]} the dropped pictures, which the caller frees
   */
  dropBefore(ptsUs) {
    const dropped = this.#waiting.filter((picture) => picture.ptsUs < ptsUs);
    this.#waiting = this.#waiting.filter((picture) => picture.ptsUs >= ptsUs);
    this.#anchor = null;
    return dropped;
  }

  /** @param {T} head @param {number} nowMs */
  #dueMs(head, nowMs) {
    const jumped = head.ptsUs > this.#endUs + JUMP_US || head.ptsUs < this.#endUs - JUMP_US;
    if (this.#anchor === null || head.discontinuity || jumped) return nowMs;
    return this.#anchor.atMs + (head.ptsUs - this.#anchor.ptsUs) / 1000;
  }

  /** @param {T} head */
  #hurryMs(head) {
    const newest = this.#waiting.at(-1);
    const behind = newest !== undefined && newest.ptsUs - head.ptsUs > BACKLOG_US;
    return behind ? (head.durationUs / 1000) * CATCH_UP : 0;
  }
}
