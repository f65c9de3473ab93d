// Statistics of the connection over the last minute: a sample a second, from counters.

/**
 * @typedef {object} Counters of an attachment since it began; null: not known
 * @property {number | null} roundTripMs the newest measurement
 * @property {number | null} jitterMs how much the transit time varies
 * @property {number} bytes received
 * @property {number | null} packets received
 * @property {number | null} lost packets
 * @property {number | null} bufferedS total time of all pictures in the jitter buffer
 * @property {number} buffered number of these pictures
 *
 * @typedef {object} Sample one second
 * @property {number} atMs
 * @property {number | null} fps
 * @property {number | null} roundTripMs
 * @property {number | null} jitterMs
 * @property {number} leadMs
 * @property {number | null} bitsPerS
 * @property {number | null} lostShare 0 to 1
 * @property {number | null} waitingMs how long a picture waits here before it is shown
 *
 * @typedef {object} LineStats
 * @property {{counters: Counters, atMs: number} | null} before the counters of the second before, of the same attachment
 * @property {readonly Sample[]} samples oldest first
 */

export const KEPT_MS = 60_000;

/** @type {LineStats} */
export const NOTHING_MEASURED = Object.freeze({ before: null, samples: Object.freeze([]) });

/**
 * Add a second.
 * @param {LineStats} stats
 * @param {Counters} counters
 * @param {{atMs: number, fps: number | null, leadMs: number, waitingMs: number | null}} shown what the page
 *   knows itself; `waitingMs` is used where the counters do not tell
 * @returns {LineStats}
 */
export function measured(stats, counters, { atMs, fps, leadMs, waitingMs }) {
  const { before } = stats;
  const took = before === null || atMs <= before.atMs ? null : before;
  /** @type {Sample} */
  const sample = {
    atMs,
    fps,
    roundTripMs: counters.roundTripMs,
    jitterMs: counters.jitterMs,
    leadMs,
    bitsPerS: took && ((counters.bytes - took.counters.bytes) * 8000) / (atMs - took.atMs),
    lostShare: took && lostShareOf(counters, took.counters),
    waitingMs: counters.bufferedS === null ? waitingMs : took && bufferedMsOf(counters, took.counters),
  };
  const samples = [...stats.samples.filter((each) => each.atMs > atMs - KEPT_MS), sample];
  return { before: { counters, atMs }, samples };
}

/** The next attachment counts from zero; the samples stay. @param {LineStats} stats @returns {LineStats} */
export function cut(stats) {
  return stats.before === null ? stats : { ...stats, before: null };
}

/** @param {LineStats} stats @returns {Sample | null} */
export function newest({ before, samples }) {
  return before === null ? null : (samples.at(-1) ?? null);
}

/** @param {Counters} now @param {Counters} before */
function lostShareOf(now, before) {
  if (now.lost === null || now.packets === null) return null;
  const lost = Math.max(0, now.lost - (before.lost ?? 0)); // a late packet reduces the count
  const all = lost + now.packets - (before.packets ?? 0);
  return all > 0 ? lost / all : null;
}

/** @param {Counters} now @param {Counters} before */
function bufferedMsOf(now, before) {
  const count = now.buffered - before.buffered;
  return count > 0 ? (((now.bufferedS ?? 0) - (before.bufferedS ?? 0)) * 1000) / count : null;
}

/** How much the transit time of messages varies (RFC 3550), from their times of sending and arrival. */
export class Jitter {
  /** @type {number | null} */
  #transitMs = null;
  #jitterMs = 0;

  /** @param {number} sentUs on the server's clock @param {number} heardMs on this one */
  add(sentUs, heardMs) {
    const transitMs = heardMs - sentUs / 1000;
    const by = this.#transitMs === null ? 0 : Math.abs(transitMs - this.#transitMs);
    this.#transitMs = transitMs;
    this.#jitterMs += (by - this.#jitterMs) / 16;
  }

  /** @returns {number | null} null before the first message */
  get ms() {
    return this.#transitMs === null ? null : this.#jitterMs;
  }
}

/** How long commands take to be answered: the shortest recent time, because some wait for the model. */
export class AnswerTimes {
  /** @type {Map<string, number>} when each command was sent */
  #sent = new Map();
  /** @type {{atMs: number, tookMs: number}[]} */
  #took = [];

  /** @param {string} id @param {number} nowMs */
  sent(id, nowMs) {
    this.#sent.set(id, nowMs);
    if (this.#sent.size <= COMMANDS_KEPT) return;
    const [oldest] = this.#sent.keys(); // a `playhead` is answered only when it is wrong
    this.#sent.delete(oldest);
  }

  /** @param {string} id @param {number} nowMs */
  answered(id, nowMs) {
    const sentMs = this.#sent.get(id);
    if (sentMs === undefined) return;
    this.#sent.delete(id);
    this.#took = [...this.#took.slice(1 - ANSWERS_KEPT), { atMs: nowMs, tookMs: nowMs - sentMs }];
  }

  /** @param {number} nowMs @returns {number | null} */
  shortestMs(nowMs) {
    const recent = this.#took.filter(({ atMs }) => atMs > nowMs - KEPT_MS);
    return recent.length === 0 ? null : Math.min(...recent.map(({ tookMs }) => tookMs));
  }
}

const COMMANDS_KEPT = 64;
const ANSWERS_KEPT = 8;
