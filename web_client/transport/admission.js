// Asks whether the server would take a request before the page sends it, because a browser prints
// each refused request in red.

import { closeReasonOf, closeReasonOfFailure } from "./close_reason.js";
import { RefusedError, request } from "./requests.js";

/**
 * @typedef {import("./close_reason.js").CloseReason} CloseReason
 * @typedef {{name: string, state: string}} ModelState
 * @typedef {object} Status the server's answer at `v1/status`
 * @property {string} state
 * @property {boolean} open
 * @property {number | null} position
 * @property {{code: string, message: string, retry_after_s: number | null} | null} refusal
 * @property {ModelState[]} models
 * @property {{live: boolean}} [session]
 */

const LOADING_POLL_MS = 1000;
const LONGEST_POLL_MS = 5000;
const GONE = 4404;
/** The HTTP status of a refusal after which waiting may help. */
const PASSING_STATUS = 503;

/**
 * Ask whether a new session would be opened.
 * @param {{model?: string, program?: string}} opening @param {string} [owner] whose session it would be
 * @returns {Promise<CloseReason | null>} why not, and how long to wait; null when it would
 */
export async function refusalOfOpening(opening, owner) {
  return refusalOf(await askStatus(opening, owner));
}

/**
 * Ask whether a session still exists.
 * @param {{id: string, token: string}} ticket
 * @returns {Promise<CloseReason | null>} null when it is
 */
export async function refusalOfSession({ id, token }) {
  const { session } = await request(`v1/status?session=${id}`, { token });
  return session.live ? null : closeReasonOf(GONE);
}

/**
 * Ask whether a session would begin at once, without waiting in line.
 * @param {{model?: string, program?: string}} opening @param {string} [owner]
 * @returns {Promise<string | null>} why not, for people; null when it would
 */
export async function refusalOfFork(opening, owner) {
  const status = await askStatus(opening, owner);
  if (status.refusal !== null) return status.refusal.message;
  return status.position === 0 ? null : "every place is taken";
}

/** @param {{model?: string, program?: string}} opening @param {string} [owner] @returns {Promise<Status>} */
function askStatus({ model, program }, owner) {
  const query = new URLSearchParams();
  if (model !== undefined) query.set("model", model);
  if (program !== undefined) query.set("program", program);
  return request(query.toString() === "" ? "v1/status" : `v1/status?${query}`, { token: owner });
}

/** @param {Status} status @returns {CloseReason | null} */
export function refusalOf({ state, open, refusal, models }) {
  if (open || refusal === null) return null;
  if (refusal.retry_after_s !== null && (state === "loading" || state === "restarting")) {
    return { next: "wait", isLoading: true, reason: progressOf(models), waitMs: LOADING_POLL_MS };
  }
  const reason = closeReasonOfFailure(new RefusedError(PASSING_STATUS, refusal));
  if (reason.next !== "retry") return reason;
  return { ...reason, next: "wait", waitMs: Math.min(LONGEST_POLL_MS, reason.waitMs ?? Infinity) };
}

/** @param {ModelState[]} models @returns {string} how many models are ready, for people; empty with one model */
function progressOf(models) {
  if (models.length < 2) return "";
  const ready = models.filter(({ state }) => state === "ready").length;
  return `${ready} of ${models.length} models are ready.`;
}
