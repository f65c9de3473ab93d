// When each picture is due. It has no clock of its own: time is passed in.

/**
 * @typedef {object} Timed
 * @property {number} ptsUs when it is due, on the stream's clock
 * @property {number} durationUs
 * @property {boolean} discontinuity
 * @property {number} [chunk] the pictures of a chunk come at once
 */

// A timer that fires this late does not move the anchor.
const TOLERANCE_MS = 20;
// A picture is shown this much too early rather than after another timer, which would be late.
const EARLY_MS = 3;
// A longer gap in the stream's clock is a jump, which is not waited for.
const JUMP_US = 1_000_000;
// A viewer can fall behind without bound; with more than this waiting, the clock runs faster.
const BACKLOG_US = 1_000_000;
const CATCH_UP = 0.1;
// What a late picture has cost is won back once all pictures of this time came early enough.
const WINDOW_MS = 1000;
const KEPT_MS = 4;
const MOST_LOST_MS = 500;
// Pictures of a chunk are shown at most so much further apart than they last.
const MOST_STRETCH = 2;
// A chunk that takes so many times as long as it lasts tells of a stall, and not of a rate.
const STALL = 3;
// Pictures are spread over a little less than the time that a chunk took, because where the model
// waits for this page, what is spread here slows it.
const CLOSER = 0.95;
const SMOOTHING = 0.3;

/**
 * Holds pictures until they are due, in order.
 *
 * The clock is anchored at a picture that was shown. A picture that comes too late is shown at once
 * and becomes the anchor, so that those after it keep their distance and no burst follows a pause.
 * What that costs is won back, a little with each picture, when the pictures come early again; the
 * clock never gets ahead of where it was. Where chunks come slower than they last, their pictures
 * are spread, so that a slow model is slow evenly and does not stop after each chunk.
 * @template {Timed} T
 */
export class Pacer {
  /** @type {T[]} */
  #waiting = [];
  /** @type {{ptsUs: number, atMs: number, chunk: number | undefined} | null} */
  #anchor = null;
  #endUs = 0;
  #lostMs = 0; // by which the clock is later than without late pictures
  #owedMs = 0; // of that, what can be won back now
  #earliestMs = Infinity; // how early the latest picture of the window came
  /** @type {number | null} */
  #windowMs = null;
  #stretch = 1;
  /** @type {{chunk: number | undefined, atMs: number, mediaMs: number} | null} the newest chunk */
  #newest = null;

  get size() {
    return this.#waiting.length;
  }

  /** How much media time waits. */
  get waitingUs() {
    return this.#waiting.reduce((sum, { durationUs }) => sum + durationUs, 0);
  }

  /** @param {T} picture @param {number} [nowMs] when it came; without it no rate is measured */
  add(picture, nowMs) {
    if (nowMs !== undefined) this.#measure(picture, nowMs);
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
    if (dueMs > nowMs + EARLY_MS) return { picture: null, waitMs: dueMs - nowMs };
    this.#waiting.shift();
    const late = nowMs - dueMs > TOLERANCE_MS;
    if (late) this.#lostMs = Math.min(MOST_LOST_MS, this.#lostMs + nowMs - dueMs);
    const atMs = late ? nowMs : dueMs - this.#hurryMs(head);
    this.#anchor = { ptsUs: head.ptsUs, atMs, chunk: head.chunk };
    this.#endUs = head.ptsUs + head.durationUs;
    return { picture: head, waitMs: 0 };
  }

  /**
   * Drop waiting pictures. When none is left, the next one sets a new anchor.
   * @param {(picture: T) => boolean} isDropped
   * @returns {T[]} the dropped pictures, which the caller frees
   */
  drop(isDropped) {
    const dropped = this.#waiting.filter(isDropped);
    this.#waiting = this.#waiting.filter((picture) => !isDropped(picture));
    this.#newest = null;
    if (this.#waiting.length === 0) {
      this.#anchor = null;
      this.#lostMs = this.#owedMs = 0;
    }
    return dropped;
  }

  /** @param {T} head @param {number} nowMs */
  #dueMs(head, nowMs) {
    const jumped = head.ptsUs > this.#endUs + JUMP_US || head.ptsUs < this.#endUs - JUMP_US;
    if (this.#anchor === null || head.discontinuity || jumped) return nowMs;
    const { ptsUs, atMs, chunk } = this.#anchor;
    const stretch = chunk !== undefined && head.chunk === chunk ? this.#stretch : 1;
    return atMs + ((head.ptsUs - ptsUs) / 1000) * stretch;
  }

  /** @param {T} head */
  #hurryMs(head) {
    const newest = this.#waiting.at(-1);
    const mostMs = (head.durationUs / 1000) * CATCH_UP;
    if (newest !== undefined && newest.ptsUs - head.ptsUs > BACKLOG_US) return mostMs;
    const hurryMs = Math.min(mostMs, this.#owedMs);
    this.#owedMs -= hurryMs;
    this.#lostMs -= hurryMs;
    return hurryMs;
  }

  /** @param {T} picture @param {number} nowMs */
  #measure(picture, nowMs) {
    const earlyMs = this.#dueMs(picture, nowMs) - nowMs;
    if (picture.discontinuity || this.#anchor === null) this.#earliestMs = 0;
    this.#earliestMs = Math.min(this.#earliestMs, earlyMs);
    this.#windowMs ??= nowMs;
    if (nowMs - this.#windowMs >= WINDOW_MS) {
      this.#owedMs = Math.max(0, Math.min(this.#lostMs, this.#earliestMs - KEPT_MS));
      this.#earliestMs = Infinity;
      this.#windowMs = nowMs;
    }
    this.#measureChunk(picture, nowMs);
  }

  /** @param {T} picture @param {number} nowMs */
  #measureChunk(picture, nowMs) {
    const newest = this.#newest;
    if (newest !== null && newest.chunk === picture.chunk) {
      newest.mediaMs += picture.durationUs / 1000;
      return;
    }
    if (newest !== null) {
      const took = (nowMs - newest.atMs) / newest.mediaMs;
      if (took < STALL) {
        // A chunk that had to wait shows that the model can do more.
        const wanted = this.#waiting.length > 0 ? 1 : Math.max(1, took * CLOSER);
        this.#stretch += SMOOTHING * (Math.min(wanted, MOST_STRETCH) - this.#stretch);
      }
    }
    this.#newest = { chunk: picture.chunk, atMs: nowMs, mediaMs: picture.durationUs / 1000 };
  }
}
