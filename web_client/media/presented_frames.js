// Which of the pictures that the server announced have been presented, by their RTP timestamps.
// Announcements come by the data channel and pictures by RTP, so either may come first.

/** @typedef {import("../transport/wire.js").MediaChunk & {rtp_timestamp: number}} Announced */
/**
 * @typedef {object} Passed what follows from a presented picture
 * @property {Announced} shown the newest picture that is or was shown, as announced
 * @property {number} atMs when it was presented
 * @property {number | null} chunk the newest chunk of which every picture is past
 * @property {number} skipped how many pictures before it were never shown
 * @property {number | null} waitedMs how long the first picture of `chunk` waited; null: not known
 */

const KEPT = 512;
const CUTS_KEPT = 8;
// A picture is announced when it is sent; one that was not shown after this long is lost.
const LOST_AFTER_MS = 1000;

/** Timestamps wrap around at 32 bits. @param {number} a @param {number} b @returns {number} a - b */
export function rtpDistance(a, b) {
  return (a - b) | 0;
}

export class PresentedFrames {
  /** @type {{announced: Announced, atMs: number}[]} oldest first */
  #awaited = [];
  /** @type {{rtp: number, atMs: number, waitedMs: number | null} | null} the picture on the screen */
  #screen = null;
  /** The chunk of the newest picture that is past. @type {number | null} */
  #chunk = null;
  /** How long the first picture of that chunk waited; null where it was not shown. @type {number | null} */
  #waitedMs = null;
  /** @type {{first: number, last: number}[]} pictures that were dropped and must not be shown */
  #cuts = [];

  /** How many pictures were announced and have not been presented. */
  get awaited() {
    return this.#awaited.length;
  }

  /**
   * The server has sent a picture.
   * @param {Announced} announced @param {number} nowMs
   * @returns {Passed | null} not null when it is shown already, or was skipped
   */
  announce(announced, nowMs) {
    this.#awaited.push({ announced, atMs: nowMs });
    if (this.#awaited.length > KEPT) this.#awaited.shift();
    return this.#pass();
  }

  /**
   * A picture was presented.
   * @param {number} rtp @param {number} atMs @param {number | null} [waitedMs] how long it waited for that
   * @returns {Passed | null} null when the server has not announced it yet
   */
  present(rtp, atMs, waitedMs = null) {
    this.#screen = { rtp, atMs, waitedMs };
    return this.#pass();
  }

  /**
   * A picture was presented by a browser that does not tell which: take the newest.
   * @param {number} atMs @returns {Passed | null}
   */
  presentNewest(atMs) {
    const newest = this.#awaited.at(-1);
    return newest === undefined ? null : this.present(newest.announced.rtp_timestamp, atMs);
  }

  /** Whether a picture was dropped by an interrupt and arrives late. @param {number} rtp */
  isCut(rtp) {
    return this.#cuts.some(({ first, last }) => rtpDistance(rtp, first) >= 0 && rtpDistance(rtp, last) <= 0);
  }

  /**
   * Drop the chunks behind `chunk` that were not presented.
   * @param {number} chunk -1: all @param {number} nextUs when the next picture begins
   */
  dropAfter(chunk, nextUs) {
    if (chunk < 0) this.#chunk = null; // chunks may be made again, under the same numbers
    const dropped = this.#take(({ announced }) => announced.chunk > chunk && announced.pts_us < nextUs);
    if (dropped.length === 0) return;
    const cut = { first: dropped[0].rtp_timestamp, last: dropped[dropped.length - 1].rtp_timestamp };
    this.#cuts = [...this.#cuts.slice(1 - CUTS_KEPT), cut];
  }

  /**
   * Give up on pictures that are overdue: lost ones, and those that came while the page was
   * hidden.
   * @param {number} nowMs
   * @returns {Passed | null} as if the newest of them were past
   */
  giveUp(nowMs) {
    const lost = this.#take(({ atMs }) => nowMs - atMs > LOST_AFTER_MS);
    if (lost.length === 0) return null;
    this.#chunk = null;
    return passedOf(lost, { atMs: nowMs, skipped: lost.length, waitedMs: null });
  }

  /** Another connection, with timestamps of its own. */
  clear() {
    this.#awaited = [];
    this.#screen = null;
    this.#chunk = null;
    this.#cuts = [];
  }

  /** @returns {Passed | null} */
  #pass() {
    const screen = this.#screen;
    if (screen === null) return null;
    const passed = this.#take(({ announced }) => {
      return rtpDistance(announced.rtp_timestamp, screen.rtp) <= 0;
    });
    if (passed.length === 0) return null;
    const isShown = passed[passed.length - 1].rtp_timestamp === screen.rtp;
    const skipped = isShown ? passed.length - 1 : passed.length;
    const waitedMs = this.#waitOf(passed, isShown ? screen.waitedMs : null);
    return passedOf(passed, { atMs: screen.atMs, skipped, waitedMs });
  }

  /**
   * How long the first picture waited of the newest chunk that is past.
   * @param {Announced[]} passed oldest first; all but the last were skipped
   * @param {number | null} newestMs how long the last one waited
   */
  #waitOf(passed, newestMs) {
    let waitedMs = null;
    for (const picture of passed) {
      if (picture.chunk !== this.#chunk) this.#waitedMs = picture === passed.at(-1) ? newestMs : null;
      this.#chunk = picture.chunk;
      if (picture.last) waitedMs = this.#waitedMs;
    }
    return waitedMs;
  }

  /** @param {(each: {announced: Announced, atMs: number}) => boolean} isTaken */
  #take(isTaken) {
    const taken = this.#awaited.filter(isTaken);
    this.#awaited = this.#awaited.filter((each) => !isTaken(each));
    return taken.map(({ announced }) => announced);
  }
}

/**
 * @param {Announced[]} passed oldest first
 * @param {{atMs: number, skipped: number, waitedMs: number | null}} how
 * @returns {Passed}
 */
function passedOf(passed, { atMs, skipped, waitedMs }) {
  const chunk = passed.findLast(({ last }) => last)?.chunk ?? null;
  return { shown: passed[passed.length - 1], atMs, chunk, skipped, waitedMs };
}
