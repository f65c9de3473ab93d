// What was shown of late: frames a second, lead, dropped pictures.

/**
 * @typedef {object} Showing
 * @property {number[]} shownAtMs when the newest pictures were shown
 * @property {number} seenUs where the newest picture shown ends, in media time
 * @property {number} leadUs how far ahead of that the newest picture was when it came
 * @property {number} dropped pictures left out by the server or here
 */

const FPS_WINDOW_MS = 2000;

/** @type {Showing} */
export const NOTHING_SHOWN = Object.freeze({ shownAtMs: [], seenUs: 0, leadUs: 0, dropped: 0 });

/**
 * A picture came. @param {Showing} showing @param {number} endUs where it ends
 * @param {number} dropped pictures left out just before it @returns {Showing}
 */
export function came(showing, endUs, dropped) {
  return { ...skipped(showing, dropped), leadUs: Math.max(0, endUs - showing.seenUs) };
}

/** @param {Showing} showing @param {number} endUs @param {number} atMs @returns {Showing} */
export function shown(showing, endUs, atMs) {
  return recent({ ...showing, shownAtMs: [...showing.shownAtMs, atMs], seenUs: endUs }, atMs);
}

/** What was not shown before `nextUs` never will be. @param {Showing} showing @param {number} nextUs */
export function cut(showing, nextUs) {
  return { ...showing, seenUs: nextUs, leadUs: 0 };
}

/** @param {Showing} showing @param {number} count @returns {Showing} */
export function skipped(showing, count) {
  return count === 0 ? showing : { ...showing, dropped: showing.dropped + count };
}

/** Forget what was shown long before. @param {Showing} showing @param {number} nowMs @returns {Showing} */
export function recent(showing, nowMs) {
  const { shownAtMs } = showing;
  if (!(shownAtMs[0] < nowMs - FPS_WINDOW_MS)) return showing;
  // The newest two stay whatever their age, for a slow machine has no more.
  const kept = shownAtMs.filter((atMs, at) => {
    return atMs >= nowMs - FPS_WINDOW_MS || at >= shownAtMs.length - 2;
  });
  return kept.length === shownAtMs.length ? showing : { ...showing, shownAtMs: kept };
}

/**
 * @param {Showing} showing @param {number} [nowMs] a picture that is long due counts as slow
 * @returns {number | null} null while too few pictures were shown to tell
 */
export function framesPerSecond({ shownAtMs }, nowMs = -Infinity) {
  if (shownAtMs.length < 2) return null;
  const first = shownAtMs[0];
  const last = shownAtMs[shownAtMs.length - 1];
  const gaps = shownAtMs.length - 1;
  const isDue = nowMs - last > Math.max(FPS_WINDOW_MS, (last - first) / gaps);
  const end = isDue ? nowMs : last;
  return end > first ? (gaps * 1000) / (end - first) : null;
}
