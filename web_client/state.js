// The view that the page renders, as a pure function: (view, message) -> next view.
// Messages are the server's events, and the page's own, whose types begin with `page.`.

import * as choices from "./input/choices.js";
import * as lineStats from "./transport/line_stats.js";
import * as latencies from "./media/latency.js";
import * as narrations from "./ui/narration.js";
import * as playbackStats from "./media/playback_stats.js";
import { newPromptStatus, SPOKEN_CHARS, promptStatusText } from "./ui/prompt_status.js";

/**
 * @typedef {import("./ui/prompt_status.js").PromptStatus} PromptStatus
 *
 * @typedef {object} Kept
 * @property {"recording" | "clip"} kind
 * @property {string} name
 * @property {number} durationUs
 * @property {number} sizeBytes
 * @property {{id: string, token: string} | null} ticket of its session, which may be an earlier one
 *
 * @typedef {{lead: {allowed_ms: number, unseen_ms: number}, attachments: {role: string,
 *   round_trip_ms: number | null, waiting: number}[]}} Served of `v1/sessions/{id}/stats`
 *
 * @typedef {object} View
 * @property {"connecting" | "waiting" | "open" | "lost" | "over"} link the connection to the server;
 *   waiting: the server answers, but takes no session yet
 * @property {number} retryAtMs when the next attempt to reach a lost server begins
 * @property {string} reason why the link is lost or over, for people
 * @property {boolean} isLoading whether the server, in `waiting`, is loading a model
 * @property {boolean} isBusy whether the server answers but refuses this client for now
 * @property {string} ending why the session itself ended, as the server says it
 * @property {"retry" | "renew" | null} nextAction what the person can do when the link is over
 * @property {"driver" | "viewer" | null} role
 * @property {import("./transport/transport_choice.js").Transport | null} transport of the open link
 * @property {string} id of the session
 * @property {any} session the server's SessionView, once attached
 * @property {number | null} promptChars the longest prompt that the server takes; null: not known
 * @property {boolean} canRecord
 * @property {number} clipS how many of the last seconds can be kept; 0 when none
 * @property {choices.Choices} chosen choices that the server has not answered yet
 * @property {string | null} recordingName of the running recording
 * @property {number | null} recordedUs length of the running recording
 * @property {Kept | null} kept the newest recording or clip that can be fetched
 * @property {number | null} queued the place in the waiting line
 * @property {boolean} recovering whether the model's worker was lost and the session is being recovered
 * @property {number | null} lostAtChunk the newest chunk before that loss, as told over this
 *   attachment; null when it was not told
 * @property {{stream: string, codec: string, width: number, height: number} | null} media
 * @property {string | null} sound the stream that can be heard
 * @property {latencies.Latency} latency
 * @property {playbackStats.PlaybackStats} screen
 * @property {lineStats.LineStats} line
 * @property {Served | null} served the server's statistics, while they come
 * @property {PromptStatus | null} promptStatus the newest prompt that was sent from here, and its outcome
 * @property {narrations.Lines} lines what was said and asked
 * @property {boolean} isHeard whether the server detects speech in what is pushed
 * @property {{code: string, message: string} | null} error
 * @property {string} announcement text for screen readers
 * @property {string} notice why the previous session is gone; shown for a while
 * @property {number | null} noticeUntilMs when the notice disappears; null before the first picture
 */

const NOTICE_MS = 10_000;
/** The `control` in the receipt of the prompt that a session was created with. */
const OPENING = "opening";
const NOT_RECORDING = Object.freeze({ recordingName: null, recordedUs: null });

/** @type {Set<keyof View>} */
const NUMBERS = new Set(["screen", "latency", "line", "served"]);

/** @type {View} */
export const INITIAL_VIEW = Object.freeze({
  link: "connecting",
  retryAtMs: 0,
  reason: "",
  isLoading: false,
  isBusy: false,
  ending: "",
  nextAction: null,
  role: null,
  transport: null,
  id: "",
  session: null,
  promptChars: null,
  canRecord: false,
  clipS: 0,
  chosen: choices.NOTHING_CHOSEN,
  recordingName: null,
  recordedUs: null,
  kept: null,
  queued: null,
  recovering: false,
  lostAtChunk: null,
  media: null,
  sound: null,
  latency: latencies.NO_LATENCY,
  screen: playbackStats.NOTHING_SHOWN,
  line: lineStats.NOTHING_MEASURED,
  served: null,
  promptStatus: null,
  lines: narrations.NOTHING_SAID,
  isHeard: false,
  error: null,
  announcement: "",
  notice: "",
  noticeUntilMs: null,
});

/** @type {Record<string, (view: View, message: any) => View>} */
const REDUCERS = {
  "page.connecting": (view) => unanswered({ ...view, link: "connecting" }),
  "page.waiting": onWaiting,
  "page.lost": (view, message) => unlinked(view, "lost", message),
  "page.over": (view, message) => unlinked(view, "over", message),
  "page.new_session": onNewSession,
  "page.failed": withError,
  "page.error_read": (view) => ({ ...view, error: null }),
  "page.pressed": onPressed,
  "page.prompted": onPrompted,
  "page.chosen": (view, choice) => ({ ...view, chosen: choices.chosen(view.chosen, choice), error: null }),
  "page.asked": (view, { id, text }) => {
    return { ...view, lines: narrations.asked(view.lines, id, text), error: null };
  },
  "page.transport": (view, { transport }) => ({ ...view, transport }),
  "page.shown": onShown,
  "page.skipped": (view, { count }) => ({ ...view, screen: playbackStats.skipped(view.screen, count) }),
  "page.measured": onMeasured,
  "page.tick": onTick,

  "session.attached": onAttached,
  "session.updated": onUpdated,
  "session.interrupted": onInterrupted,
  "session.recovering": onRecovering,
  "session.closed": (view, { reason, message }) => ({ ...view, ending: message || reason }),

  "request.accepted": onAccepted,
  "request.queued": onQueued,
  "request.started": (view) => ({ ...view, queued: null }),

  "control.applied": onApplied,
  "control.superseded": (view, { control }) => settled(view, control, "replaced"),

  "media.init": (view, media) => {
    return media.kind === "audio" ? { ...view, sound: media.stream } : { ...view, media };
  },
  "media.chunk": onChunk,
  "media.complete": (view) => view,
  "text.delta": onText,
  "turn.started": (view) => ({ ...view, isHeard: true }),
  "turn.ended": (view) => ({ ...view, isHeard: false }),
  "artifact.created": (view, { kind, name }) => {
    return kind === "recording" ? { ...view, recordingName: name, recordedUs: 0 } : view;
  },
  "artifact.updated": (view, { name, duration_us }) => {
    return name === view.recordingName ? { ...view, recordedUs: duration_us } : view;
  },
  "artifact.completed": onKept,
  "page.kept": (view, { ticket, ...recording }) => ({ ...view, kept: keptOf(recording, ticket) }),
  "page.put_away": (view) => ({ ...view, kept: null }),
  error: onError,
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

/**
 * Whether two views differ only in numbers that change with every picture. Those can wait for the
 * next tick, because rendering the page for each picture would cost as much as the picture.
 * @param {View} before @param {View} after
 */
export function differInNumbersOnly(before, after) {
  if (before.screen.seenUs === 0 && after.screen.seenUs !== 0) return false; // the first picture
  const names = /** @type {(keyof View)[]} */ (Object.keys(after));
  return names.every((name) => NUMBERS.has(name) || before[name] === after[name]);
}

/** @param {View} view @param {string} announcement */
function said(view, announcement) {
  return { ...view, announcement };
}

// --- the connection to the server ---

/** @param {View} view @param {"lost" | "over"} link */
function unlinked(view, link, { reason, isBusy = false, retryAtMs = 0, nextAction = null }) {
  const error = link === "over" ? null : view.error; // the overlay shows it instead
  const waits = { queued: null, isHeard: false }; // `recovering` stays until a picture comes
  const notice = link === "over" ? "" : view.notice;
  const next = unanswered({
    ...view, link, reason, isBusy, retryAtMs, nextAction, error, notice, ...waits,
  });
  return view.reason === reason ? next : said(next, reason); // announced once, not at every attempt
}

/** @param {View} view */
function onWaiting(view, { reason, isLoading }) {
  const next = unanswered({ ...view, link: "waiting", reason, isLoading, queued: null });
  const isSaid = view.link === "waiting" && view.reason === reason && view.isLoading === isLoading;
  return isSaid ? next : said(next, isLoading ? `Loading the model. ${reason}`.trim() : reason);
}

/** @param {View} view */
function onNewSession(view, { reason, isLoss = false }) {
  const { session, media, promptChars, kept } = view; // a recording outlives its session
  const notice = isLoss ? reason : "";
  return said({ ...INITIAL_VIEW, session, media, promptChars, kept, reason, notice }, reason);
}

/** @param {View} view */
function onAttached(view, { session: id, role, view: session, limits }) {
  const next = unanswered({
    ...view,
    link: /** @type {const} */ ("open"),
    reason: "",
    id,
    role,
    session,
    promptChars: limits?.prompt_chars ?? null,
    canRecord: limits?.recording ?? false,
    clipS: limits?.clip_s ?? 0,
    recordingName: session.recording ?? null,
    recordedUs: session.recording == null ? null : (view.recordedUs ?? 0),
    recovering: view.recovering && session.state !== "paused", // else no picture would end it
    lostAtChunk: null, // the server tells it again where it still holds
    lines: narrations.rejoined(view.lines),
  });
  return said(next, `${view.notice || "Connected."} The world is ${session.state}.`);
}

/** @param {View} view */
function onUpdated(view, { view: session }) {
  const next = { ...view, session };
  if (session.state === view.session?.state) return next;
  const isNoticed = view.notice === "" || view.noticeUntilMs !== null; // else its announcement would be cut off
  return isNoticed ? said(next, `The world is ${session.state}.`) : next;
}

/** @param {View} view */
function onRecovering(view, { chunk: lostAtChunk = null }) {
  const lines = narrations.brokenOff(view.lines);
  const next = withoutPresses({ ...view, recovering: true, lostAtChunk, lines });
  return said(next, "The model was lost. Bringing the world back.");
}

/** A press before a break and a picture after it must not be measured together. @param {View} view */
function withoutPresses(view) {
  return { ...view, latency: { ...view.latency, stamps: [] } };
}

/** Commands sent over an earlier link are not answered over the next. @param {View} view */
function unanswered(view) {
  const line = lineStats.cut(view.line);
  return withoutPresses({ ...view, chosen: choices.NOTHING_CHOSEN, line, served: null });
}

/** @param {View} view */
function onQueued(view, { position }) {
  return said({ ...view, queued: position }, `Waiting in line: number ${position}.`);
}

/** @param {View} view */
function onInterrupted(view, { seen_us, next_us, reason, loops = [] }) {
  const isAct = reason === "act"; // it breaks no text off, and takes no control back
  const lines = isAct || loops.length === 1 ? view.lines : narrations.brokenOff(view.lines);
  const next = { ...view, lines, screen: playbackStats.cut(view.screen, next_us) };
  if (isAct) return next;
  if (reason === "reset") return withoutPresses(next);
  return { ...next, latency: latencies.unseen(view.latency, seen_us) };
}

/** @param {View} view */
function onError(view, message) {
  const next = withError(settled(view, message.command, "refused"), message);
  return next.promptStatus === view.promptStatus || next.promptStatus === null
    ? next
    : said(next, promptStatusText(next.promptStatus, SPOKEN_CHARS)); // instead of an older prompt
}

/** @param {View} view */
function withError(view, { code, message }) {
  return { ...view, error: { code, message } }; // the alert element is announced by itself
}

// --- commands and their receipts ---

/** @param {View} view */
function onPressed(view, { id, atMs }) {
  return { ...view, latency: latencies.pressed(view.latency, id, atMs) };
}

/** @param {View} view */
function onPrompted(view, { id, text }) {
  return { ...view, promptStatus: newPromptStatus(id, text), error: null };
}

/**
 * The server has accepted a command: from now on its values are the chosen ones, although the
 * `session.updated` that tells them may come later.
 * @param {View} view
 */
function onAccepted(view, { command }) {
  const chosen = choices.answered(view.chosen, command);
  if (chosen === view.chosen) return view;
  const session = choices.withTaken(view.session, view.chosen, command);
  const isStopped = view.chosen[choices.RECORDING]?.id === command && !view.chosen[choices.RECORDING].value;
  const recording = isStopped ? NOT_RECORDING : null;
  return { ...view, chosen, session, ...recording };
}

/** @param {View} view */
function onApplied(view, receipt) {
  const { control, pts_us, unknown_words = [], truncated_at = null, dropped_messages = 0 } = receipt;
  const latency = latencies.applied(view.latency, control, pts_us);
  const noted = narrations.received(view.lines, control, unknown_words);
  const lines = narrations.forgetting(noted, control, dropped_messages);
  const next = { ...view, latency, lines };
  const isOdd = unknown_words.length > 0 || truncated_at !== null;
  const isOpening = control === OPENING && view.promptStatus === null && isOdd;
  const asked = isOpening ? newPromptStatus(OPENING, view.session?.prompt ?? "") : view.promptStatus;
  if (asked?.id !== control) return next;
  /** @type {PromptStatus} */
  const promptStatus = {
    ...asked,
    outcome: "applied",
    unknownWords: unknown_words,
    truncatedAt: truncated_at,
  };
  const told = promptStatusText(promptStatus, SPOKEN_CHARS);
  return said({ ...next, promptStatus }, isOpening ? `${view.notice} ${told}`.trim() : told);
}

/**
 * A command that will never act.
 * @param {View} view @param {string | null | undefined} id @param {"replaced" | "refused"} outcome
 */
function settled(view, id, outcome) {
  const latency = latencies.forgotten(view.latency, id);
  const isNewest = view.promptStatus !== null && view.promptStatus.id === id;
  const promptStatus = isNewest ? { .../** @type {PromptStatus} */ (view.promptStatus), outcome } : view.promptStatus;
  const chosen = choices.answered(view.chosen, id);
  return { ...view, chosen, latency, promptStatus, lines: narrations.refused(view.lines, id) };
}

// --- recordings and clips ---

/** @param {View} view */
function onKept(view, { ticket = null, ...made }) {
  const recording = made.name === view.recordingName ? NOT_RECORDING : null; // another may run by now
  return { ...view, kept: keptOf(made, ticket), ...recording };
}

/** Whether the page shows that a recording runs. @param {View} view */
export function isRecording({ chosen, recordedUs }) {
  return choices.shownValue(chosen, choices.RECORDING, Number(recordedUs !== null)) > 0;
}

/** @param {any} made as the server says it @param {Kept["ticket"]} ticket @returns {Kept} */
function keptOf({ kind, name, duration_us: durationUs, size_bytes: sizeBytes }, ticket) {
  return { kind, name, durationUs, sizeBytes, ticket };
}

// --- pictures ---

/** @param {View} view */
function onChunk(view, header) {
  const { stream, pts_us, duration_us, dropped = 0 } = header;
  if (stream === view.sound && stream !== undefined) return view; // sound is no picture
  const recovering = view.recovering && isBeforeLoss(view, header);
  const back = view.recovering && !recovering ? said(view, "The world is back.") : view;
  const screen = playbackStats.came(view.screen, pts_us + duration_us, dropped);
  return { ...back, recovering, queued: null, screen };
}

/**
 * Whether a picture was made before the model was lost: one that was still in flight, or the newest
 * one, which every new attachment is sent at once. The first one after a loss is a discontinuity.
 * @param {View} view
 */
function isBeforeLoss({ lostAtChunk }, { chunk, discontinuity = false }) {
  return lostAtChunk !== null && chunk <= lostAtChunk && !discontinuity;
}

/** @param {View} view */
function onText(view, delta) {
  const recovering = view.recovering && view.media !== null; // without pictures a word ends it
  return { ...view, recovering, lines: narrations.heard(view.lines, delta) };
}

/** @param {View} view */
function onShown(view, { ptsUs, durationUs, atMs }) {
  const screen = playbackStats.shown(view.screen, ptsUs + durationUs, atMs);
  const latency = latencies.shown(view.latency, ptsUs, atMs);
  const isNew = view.notice !== "" && view.noticeUntilMs === null;
  const noticeUntilMs = isNew ? atMs + NOTICE_MS : view.noticeUntilMs;
  return { ...view, screen, latency, noticeUntilMs };
}

/** @param {View} view */
function onMeasured(view, { counters, atMs, waitingMs = null, served = null }) {
  const known = { atMs, waitingMs, fps: rateOf(view, atMs), leadMs: view.screen.leadUs / 1000 };
  const pinged = attachmentOf(view, served)?.round_trip_ms;
  // Over a socket only the server can ping; the page knows how long answers to commands take.
  const isServed = view.transport === "websocket" && pinged != null;
  const roundTripMs = isServed ? pinged : counters.roundTripMs;
  const line = lineStats.measured(view.line, { ...counters, roundTripMs }, known);
  return { ...view, line, served };
}

/** What the server says of the line to this page. @param {View} view @param {Served | null} served */
export function attachmentOf({ role }, served) {
  return served?.attachments.find((each) => each.role === role) ?? null;
}

/** Frames a second; null unless the session should be playing. @param {View} view @param {number} nowMs */
export function rateOf(view, nowMs) {
  const runs = view.link === "open" && view.session?.state === "active";
  return runs ? playbackStats.framesPerSecond(view.screen, nowMs) : null;
}

/** @param {View} view */
function onTick(view, { nowMs }) {
  const screen = playbackStats.recent(view.screen, nowMs);
  if (view.noticeUntilMs === null || nowMs < view.noticeUntilMs) {
    return screen === view.screen ? view : { ...view, screen };
  }
  return { ...view, screen, notice: "", noticeUntilMs: null };
}
