// What a close code means for the next step, and how long to wait before it.

import { RefusedError } from "./requests.js";

/**
 * @typedef {object} CloseReason
 * @property {"now" | "retry" | "wait" | "renew" | "over"} next
 *   now: continue at once; retry: the same session after a while; wait: ask the server again after
 *   a while, because it takes no session now; renew: a new session, because the old one is gone;
 *   over: only when the person says so
 * @property {string} reason for people
 * @property {boolean} [isBusy] whether the server answers but refuses this client for now
 * @property {"retry" | "renew"} [nextAction] what the person can choose, once it is over
 * @property {number} [waitMs] how long the server asks to wait
 * @property {boolean} [isLoading] whether the server is loading a model
 */

const AWAY = "The server cannot be reached. This page will try to continue your world when the server answers.";
const LOST = "The old world is lost; a new one begins with the same model and prompt.";

/** The code of an end that this page decided on. */
export const LEFT = 4000;
/** No answer in time, so the code is the page's own. */
export const SILENT = 4001;
/** The transport does not get through or has broken; another one may. */
export const BROKEN = 4002;

/** @type {Record<number, CloseReason>} */
const BY_CODE = {
  [LEFT]: { next: "now", reason: "" },
  1000: { next: "over", nextAction: "renew", reason: "This world has ended." },
  [BROKEN]: { next: "retry", reason: "WebRTC does not get through; trying again." },
  4400: { next: "over", nextAction: "retry", reason: "The server does not speak this page's protocol." },
  4401: { next: "renew", reason: LOST },
  4404: { next: "renew", reason: LOST },
  4408: { next: "over", nextAction: "retry", reason: "Nothing happened for a long time, so the world was stopped." },
  4409: { next: "over", nextAction: "retry", reason: "This world is being played in another window." },
  4413: { next: "retry", isBusy: true, reason: "The connection was too slow; joining again." },
  4429: { next: "retry", isBusy: true, reason: "The server is busy; trying again." },
};

/** @param {number} code of a WebSocket @returns {CloseReason} */
export function closeReasonOf(code) {
  return BY_CODE[code] ?? { next: "retry", reason: AWAY };
}

/** Reasons for which a server ends a peer connection and another transport may work. */
const BROKEN_REASONS = new Set(["heartbeat", "connect_timeout", "internal_error"]);

/**
 * The close code for a server's last message to a peer.
 * @param {{code: number, reason: string}} bye
 */
export function codeOfBye({ code, reason }) {
  return BROKEN_REASONS.has(reason) ? BROKEN : code;
}

/**
 * The close code for a peer connection that was not set up.
 * @param {unknown} error
 */
export function codeOfFailure(error) {
  if (!(error instanceof RefusedError)) return BROKEN;
  if (error.code === "no_such_session" || error.status === 410) return 4404;
  if (error.status === 401 || error.status === 403) return 4401;
  return BROKEN; // no peer connection for this browser, or not now: try a WebSocket, which is told why not
}

/** @param {unknown} error why a request failed @returns {CloseReason} */
export function closeReasonOfFailure(error) {
  if (!(error instanceof RefusedError)) return { next: "retry", reason: AWAY };
  // A server that names no time will not recover by itself, such as after giving up a model.
  if (!error.isPassing || error.retryAfterS === null) {
    return { next: "over", nextAction: "retry", reason: sentence(error.message) };
  }
  const waitMs = error.retryAfterS * 1000;
  return { next: "retry", isBusy: true, reason: sentence(error.message), waitMs };
}

/** @param {string} message of the server, which has no capital at its start and no full stop */
function sentence(message) {
  const text = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5000;

/**
 * @param {number} attempt from 0
 * @param {number} chance from 0 to 1; so that many clients do not reconnect at the same moment
 */
export function backoffMs(attempt, chance) {
  const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt);
  return wait * (0.75 + 0.5 * chance);
}
