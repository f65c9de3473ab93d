// What the page shows, as a pure function of what happened: (view, message) -> next view.
// Messages are the server's events, and what the page itself notices: types that begin with `page.`.

import * as latencies from "./latency.js";

/**
 * @typedef {object} View
 * @property {"connecting" | "open" | "lost" | "over"} link the way to the server
 * @property {number} retryAtMs when the next attempt to reach a lost server begins
 * @property {string} reason why the link is lost or over, for people
 * @property {boolean} isBusy whether a lost server is there, but does not take us now
 * @property {string} ending why the session itself ended, as the server says it
 * @property {"retry" | "renew" | null} offer what can be done about a link that is over
 * @property {"driver" | "viewer" | null} role
 * @property {string} id of the session
 * @property {any} session the server's SessionView, once attached
 * @property {number | null} queued the place in the waiting line
 * @property {boolean} recovering whether the model was lost and is being brought back
 * @property {{codec: string, width: number, height: number} | null} media
 * @property {latencies.Latency} latency
 * @property {Screen} screen
 * @property {Wish | null} wish the newest prompt that was asked for here, and what became of it
 * @property {{code: string, message: string} | null} error
 * @property {string} announcement what a screen reader says next
 *
 * @typedef {object} Screen
 * @property {number[]} shownAtMs when the newest pictures were shown
 * @property {number} seenUs where the newest picture shown ends, in media time
 * @property {number} leadUs how far ahead of that the newest picture was when it came
 * @property {number} dropped pictures left out by the server or here
 *
 * @typedef {object} Wish
 * @property {string} id the command
 * @property {string} text
 * @property {"asked" | "applied" | "replaced" | "refused"} outcome
 * @property {string[]} unknownWords words that the model does not know
 * @property {number | null} truncatedAt where a text that was too long was cut
 */

const FPS_WINDOW_MS = 2000;

/** @type {Screen} */
const NO_SCREEN = Object.freeze({ shownAtMs: [], seenUs: 0, leadUs: 0, dropped: 0 });

/** @type {View} */
export const INITIAL_VIEW = Object.freeze({
  link: "connecting",
  retryAtMs: 0,
  reason: "",
  isBusy: false,
  ending: "",
  offer: null,
  role: null,
  id: "",
  session: null,
  queued: null,
  recovering: false,
  media: null,
  latency: latencies.NO_LATENCY,
  screen: NO_SCREEN,
  wish: null,
  error: null,
  announcement: "",
});

/** @type {Record<string, (view: View, message: any) => View>} */
const REDUCERS = {
  "page.connecting": (view) => ({ ...view, link: "connecting" }),
  "page.lost": (view, message) => unlinked(view, "lost", message),
  "page.over": (view, message) => unlinked(view, "over", message),
  "page.new_session": onNewSession,
  "page.failed": withError,
  "page.error_read": (view) => ({ ...view, error: null }),
  "page.pressed": onPressed,
  "page.prompted": onPrompted,
  "page.shown": onShown,
  "page.skipped": (view, { count }) => withDropped(view, count),
  "page.tick": onTick,

  "session.attached": onAttached,
  "session.updated": onUpdated,
  "session.interrupted": onInterrupted,
  "session.recovering": (view) =>
    said({ ...view, recovering: true }, "The model was lost. Bringing the world back."),
  "session.parked": (view) => said(view, "The world was put aside."),
  "session.closed": (view, { reason, message }) => ({ ...view, ending: message || reason }),

  "request.accepted": (view) => view,
  "request.queued": onQueued,
  "request.started": (view) => ({ ...view, queued: null }),

  "control.applied": onApplied,
  "control.superseded": (view, { control }) => settled(view, control, "replaced"),

  "media.init": (view, media) => ({ ...view, media }),
  "media.chunk": onChunk,
  "media.complete": (view) => view,
  "text.delta": (view) => view,
  "artifact.created": (view) => view,
  "trace.step": (view) => view,
  error: (view, message) => withError(settled(view, message.command, "refused"), message),
};

/**
 * @param {View} view
 * @param {{type: string}} message
 * @returns {View}
 * @throws {Error} on a type that this page does not know: the server speaks another protocol
 */
export function reduce(view, message) {
  if (!Object.hasOwn(REDUCERS, message.type)) {
    throw new Error(`unknown message type: ${message.type}`);
  }
  return REDUCERS[message.type](view, message);
}

/** @param {View} view @param {string} announcement */
function said(view, announcement) {
  return { ...view, announcement };
}

// --- the way to the server ---

/** @param {View} view @param {"lost" | "over"} link */
function unlinked(view, link, { reason, isBusy = false, retryAtMs = 0, offer = null }) {
  const latency = { ...view.latency, stamps: [] };
  const error = link === "over" ? null : view.error; // the veil says it
  const waits = { queued: null, recovering: false };
  const next = { ...view, link, reason, isBusy, retryAtMs, offer, latency, error, ...waits };
  return view.reason === reason ? next : said(next, reason); // said once, not at every attempt
}

/** @param {View} view */
function onNewSession(view, { reason }) {
  const { session, media } = view;
  return said({ ...INITIAL_VIEW, session, media, reason }, reason);
}

/** @param {View} view */
function onAttached(view, { session: id, role, view: session }) {
  const next = { ...view, link: /** @type {const} */ ("open"), reason: "", id, role, session };
  return said(next, `Connected. The world is ${session.state}.`);
}

/** @param {View} view */
function onUpdated(view, { view: session }) {
  const next = { ...view, session };
  if (session.state === view.session?.state) return next;
  return said(next, `The world is ${session.state}.`);
}

/** @param {View} view */
function onQueued(view, { position }) {
  return said({ ...view, queued: position }, `Waiting in line: number ${position}.`);
}

/** @param {View} view */
function onInterrupted(view, { seen_us, next_us }) {
  return {
    ...view,
    latency: latencies.unseen(view.latency, seen_us),
    screen: { ...view.screen, seenUs: next_us, leadUs: 0 },
  };
}

/** @param {View} view */
function withError(view, { code, message }) {
  return { ...view, error: { code, message } }; // its own alert speaks
}

// --- what was asked, and its receipts ---

/** @param {View} view */
function onPressed(view, { id, atMs }) {
  return { ...view, latency: latencies.pressed(view.latency, id, atMs) };
}

/** @param {View} view */
function onPrompted(view, { id, text }) {
  /** @type {Wish} */
  const wish = { id, text, outcome: "asked", unknownWords: [], truncatedAt: null };
  return { ...view, wish, error: null };
}

/** @param {View} view */
function onApplied(view, { control, pts_us, unknown_words = [], truncated_at = null }) {
  const next = { ...view, latency: latencies.applied(view.latency, control, pts_us) };
  if (view.wish?.id !== control) return next;
  /** @type {Wish} */
  const wish = {
    ...view.wish,
    outcome: "applied",
    unknownWords: unknown_words,
    truncatedAt: truncated_at,
  };
  return said({ ...next, wish }, wishText(wish));
}

/**
 * A command that will never act.
 * @param {View} view @param {string | null | undefined} id @param {"replaced" | "refused"} outcome
 */
function settled(view, id, outcome) {
  const latency = latencies.forgotten(view.latency, id);
  const isWish = view.wish !== null && view.wish.id === id;
  return { ...view, latency, wish: isWish ? { ...view.wish, outcome } : view.wish };
}

/** @param {Wish} wish @returns {string} what became of it, in words */
export function wishText({ text, outcome, unknownWords, truncatedAt }) {
  const what = text === "" ? "no prompt" : text;
  const unknown = unknownWords.length ? ` I do not know: ${unknownWords.join(", ")}.` : "";
  const cut = truncatedAt === null ? "" : ` I read only the first ${truncatedAt} words.`;
  const says = {
    asked: `On its way: ${what}.`,
    applied: `The world follows: ${what}.`,
    replaced: `A newer wish replaced: ${what}.`,
    refused: `Refused: ${what}.`,
  };
  return says[outcome] + unknown + cut;
}

// --- pictures ---

/** @param {View} view */
function onChunk(view, { pts_us, duration_us, dropped = 0 }) {
  const next = withDropped({ ...view, recovering: false, queued: null }, dropped);
  const leadUs = Math.max(0, pts_us + duration_us - view.screen.seenUs);
  return { ...next, screen: { ...next.screen, leadUs } };
}

/** @param {View} view */
function onShown(view, { ptsUs, durationUs, atMs }) {
  const shownAtMs = [...view.screen.shownAtMs, atMs];
  const screen = { ...view.screen, shownAtMs, seenUs: ptsUs + durationUs };
  const latency = latencies.shown(view.latency, ptsUs, atMs);
  return onTick({ ...view, screen, latency }, { nowMs: atMs });
}

/** @param {View} view */
function onTick(view, { nowMs }) {
  const { shownAtMs } = view.screen;
  if (!(shownAtMs[0] < nowMs - FPS_WINDOW_MS)) return view;
  const recent = shownAtMs.filter((atMs) => atMs >= nowMs - FPS_WINDOW_MS);
  return { ...view, screen: { ...view.screen, shownAtMs: recent } };
}

/** @param {View} view @param {number} count */
function withDropped(view, count) {
  if (count === 0) return view;
  return { ...view, screen: { ...view.screen, dropped: view.screen.dropped + count } };
}

/** @param {View} view @returns {number | null} null while too few pictures were shown to tell */
export function framesPerSecond({ screen: { shownAtMs } }) {
  if (shownAtMs.length < 2) return null;
  const first = shownAtMs[0];
  const last = shownAtMs[shownAtMs.length - 1];
  return last > first ? ((shownAtMs.length - 1) * 1000) / (last - first) : null;
}
