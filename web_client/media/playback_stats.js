// Playback statistics: frames a second, lead, dropped pictures.

/**
 * @typedef {object} PlaybackStats
 * @property {number[]} shownAtMs when the newest pictures were shown
 * @property {number} seenUs where the newest shown picture ends, in media time
 * @property {number} leadUs how far ahead of that the newest picture was when it came
 * @property {number} dropped pictures left out by the server or here
 */

const FPS_WINDOW_MS = 2000;

/** @type {PlaybackStats} */
export const NOTHING_SHOWN = Object.freeze({ shownAtMs: [], seenUs: 0, leadUs: 0, dropped: 0 });

/**
 * A picture came. @param {PlaybackStats} stats @param {number} endUs where it ends
 * @param {number} dropped pictures left out just before it @returns {PlaybackStats}
 */
export function came(stats, endUs, dropped) {
  return { ...skipped(stats, dropped), leadUs: Math.max(0, endUs - stats.seenUs) };
}

/** @param {PlaybackStats} stats @param {number} endUs @param {number} atMs @returns {PlaybackStats} */
export function shown(stats, endUs, atMs) {
  return recent({ ...stats, shownAtMs: [...stats.shownAtMs, atMs], seenUs: endUs }, atMs);
}

/** Pictures before `nextUs` that were not shown are dropped. @param {PlaybackStats} stats @param {number} nextUs */
export function cut(stats, nextUs) {
  return { ...stats, seenUs: nextUs, leadUs: 0 };
}

/** @param {PlaybackStats} stats @param {number} count @returns {PlaybackStats} */
export function skipped(stats, count) {
  return count === 0 ? stats : { ...stats, dropped: stats.dropped + count };
}

/** Forget pictures that were shown long ago. @param {PlaybackStats} stats @param {number} nowMs @returns {PlaybackStats} */
export function recent(stats, nowMs) {
  const { shownAtMs } = stats;
  if (!(shownAtMs[0] < nowMs - FPS_WINDOW_MS)) return stats;
  // The newest two stay whatever their age, because a slow machine shows no more.
  const kept = shownAtMs.filter((atMs, at) => {
    return atMs >= nowMs - FPS_WINDOW_MS || at >= shownAtMs.length - 2;
  });
  return kept.length === shownAtMs.length ? stats : { ...stats, shownAtMs: kept };
}

/**
 * @param {PlaybackStats} stats @param {number} [nowMs] an overdue picture counts as slow
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
