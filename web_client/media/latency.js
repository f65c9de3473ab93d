// Measures key press to picture: from the press to the frame that its receipt names.

/**
 * @typedef {object} Latency
 * @property {Stamp[]} stamps presses whose picture was not shown yet, oldest first
 * @property {number[]} samplesMs the newest measurements, oldest first
 * @typedef {{id: string, atMs: number, ptsUs: number | null}} Stamp
 *   ptsUs: the first picture that shows it, once its receipt has come
 */

const STAMPS_KEPT = 64;
const SAMPLES_KEPT = 9;

/** @type {Latency} */
export const NO_LATENCY = Object.freeze({ stamps: [], samplesMs: [] });

/** @param {Latency} latency @param {string} id @param {number} atMs @returns {Latency} */
export function pressed(latency, id, atMs) {
  const stamps = [...latency.stamps, { id, atMs, ptsUs: null }].slice(-STAMPS_KEPT);
  return { ...latency, stamps };
}

/** @param {Latency} latency @param {string} id @param {number} ptsUs @returns {Latency} */
export function applied(latency, id, ptsUs) {
  const stamps = latency.stamps.map((stamp) => (stamp.id === id ? { ...stamp, ptsUs } : stamp));
  return { ...latency, stamps };
}

/**
 * Forget a press that was refused or replaced, because no picture will show it.
 * @param {Latency} latency @param {string | null | undefined} id @returns {Latency}
 */
export function forgotten(latency, id) {
  return { ...latency, stamps: latency.stamps.filter((stamp) => stamp.id !== id) };
}

/**
 * Take back the receipts of pictures that were dropped unseen; those presses act again later, and
 * get another receipt.
 * @param {Latency} latency @param {number} seenUs @returns {Latency}
 */
export function unseen(latency, seenUs) {
  const stamps = latency.stamps.map((stamp) =>
    stamp.ptsUs !== null && stamp.ptsUs > seenUs ? { ...stamp, ptsUs: null } : stamp,
  );
  return { ...latency, stamps };
}

/**
 * Note that the picture at `ptsUs` was shown.
 * @param {Latency} latency @param {number} ptsUs @param {number} atMs @returns {Latency}
 */
export function shown(latency, ptsUs, atMs) {
  const isDone = (/** @type {Stamp} */ stamp) => stamp.ptsUs !== null && stamp.ptsUs <= ptsUs;
  const done = latency.stamps.filter(isDone);
  if (done.length === 0) return latency;
  const samples = [...latency.samplesMs, ...done.map((stamp) => atMs - stamp.atMs)];
  return {
    stamps: latency.stamps.filter((stamp) => !isDone(stamp)),
    samplesMs: samples.slice(-SAMPLES_KEPT),
  };
}

/** @param {Latency} latency @returns {number | null} the median of the newest measurements */
export function medianMs(latency) {
  const sorted = [...latency.samplesMs].sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
