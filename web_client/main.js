// The wiring: connection and screens bring messages, `reduce` makes the view, `Page` shows it.

import { Connection } from "./transport/connection.js";
import { Dialer } from "./transport/dialer.js";
import { parameterKey } from "./input/choices.js";
import { ParameterSliders } from "./input/parameter_sliders.js";
import { featuresOf, showsNow } from "./ui/features.js";
import { Forks } from "./ui/forks.js";
import { Gestures } from "./input/gestures.js";
import { Inputs } from "./input/inputs.js";
import { HeldKeys } from "./input/keys.js";
import { ControlButtons } from "./input/control_buttons.js";
import { limitsText, soundLimit } from "./ui/limits.js";
import { ModelMenu } from "./ui/model_menu.js";
import { Page } from "./ui/page.js";
import { PeerScreen } from "./media/peer_screen.js";
import { Playhead } from "./media/playhead.js";
import { Recorder } from "./media/recorder.js";
import { keepChoice, recallChoice } from "./transport/transport_choice.js";
import { Screen } from "./media/screen.js";
import { Sound } from "./media/sound.js";
import { Layout } from "./ui/layout.js";
import { differInNumbersOnly, INITIAL_VIEW, reduce } from "./state.js";
import { PageStorage } from "./transport/storage.js";
import { Tabs } from "./transport/tabs.js";
import { StoredSession } from "./transport/stored_session.js";
import { findCodecs } from "./media/video_decoder.js";

const TICK_MS = 250;
const MEASURE_MS = 1000;
const ASK_EVERY = 2;

const query = new URLSearchParams(location.search);
const page = new Page(document);
let view = INITIAL_VIEW;
let isDrawing = false;
let isMeasuring = false;
let measured = 0;
/** Where parameters are turned. @type {{sliders: ParameterSliders, textSwitches: ParameterSliders} | null} */
let turnable = null;
/** A prompt that was entered while there was no connection to send it over. @type {string | null} */
let unsaid = null;

/** @param {{type: string, [field: string]: any}} message */
function dispatch(message) {
  const before = view;
  view = reduce(before, message);
  const isTick = message.type === "page.tick"; // a countdown needs a render although the view is the same
  if (isDrawing || (!isTick && differInNumbersOnly(before, view))) return;
  isDrawing = true;
  queueMicrotask(() => {
    isDrawing = false;
    page.render(view, performance.now());
    const { sliders, textSwitches } = featuresOf(view.session, view.chosen);
    turnable?.sliders.render(sliders);
    turnable?.textSwitches.render(textSwitches);
  });
}

/** @param {string} code @param {string} message */
function fail(code, message) {
  dispatch({ type: "page.failed", code, message });
}

// Comes first, so that every failure is shown on the page and not only in the console.
addEventListener("unhandledrejection", ({ reason }) => fail("page", String(reason)));
addEventListener("error", ({ message }) => fail("page", message));

// --- what the server says ---

/** @param {any} message */
function onMessage(message) {
  dispatch(message);
  switch (message.type) {
    case "session.attached":
      onAttached(message.view);
      break;
    case "session.interrupted":
      playhead.returned(message.chunk);
      screen.dropAfter(keptChunk(message), message.next_us);
      sound.cut();
      break;
    case "text.delta":
      if (message.cut) sound.cut(); // the voice must not finish it
      break;
    case "media.init":
      onInit(message);
      break;
    case "request.accepted":
      inputs.onAnswer(message.command);
      break;
    case "error":
      inputs.onAnswer(message.command);
      keyButtons.settled(message.command);
      break;
    case "control.applied":
    case "control.superseded":
      keyButtons.settled(message.control);
      break;
    case "page.transport":
      screen = message.transport === "webrtc" ? peerScreen : socketScreen;
      break;
    case "page.connecting":
    case "page.lost":
    case "page.over":
    case "page.new_session":
      playhead.forget();
      held.forget(); // the server releases the keys itself
      keyButtons.forget();
      socketScreen.close();
      peerScreen.close();
      sound.close();
      break;
  }
}

/**
 * The chunk up to which pictures are still to be shown after a cut: those that a control acts in, or that
 * fill the time until the next ones come.
 * @param {{reason: string, chunk: number}} interrupted of the leading loop, whose streams are first
 * @returns {number} -1: none of them
 */
function keptChunk({ reason, chunk }) {
  const streams = view.session?.streams ?? [];
  const shown = streams.find((/** @type {{name: string}} */ { name }) => name === view.media?.stream);
  return reason === "act" && shown?.loop === streams[0]?.loop ? chunk : -1;
}

/** @param {any} session */
function onAttached(session) {
  keyButtons.show(session);
  inputs.onAttached();
  if (unsaid !== null) say(unsaid);
  modelMenu.show(session).catch(() => {}); // without the list there is nothing to choose from
}

/** @param {any} media */
function onInit(media) {
  if (media.kind === "audio") sound.init(media);
  else {
    screen.init(media);
    layout.resize();
  }
}

/** @param {import("./transport/wire.js").MediaChunk} header @param {Uint8Array | null} payload */
function onMedia(header, payload) {
  dispatch(header);
  if (header.stream === view.sound) sound.push(header, payload);
  else screen.push(header, payload);
}

/** @param {MediaStreamTrack} track */
function onTrack(track) {
  if (track.kind === "video") peerScreen.play(track);
  else sound.play(track);
}

// --- what is shown ---

const layout = new Layout(
  page.part("viewport"),
  page.part("frame"),
  page.part("picture"),
  page.part("glow"),
);

/** @type {import("./media/screen.js").ScreenEvents} */
const screenEvents = {
  onDrawn(atMs) {
    connection.attachment?.notePresented();
    layout.light(atMs);
  },
  onSeen(chunk, ptsUs, waitedMs) {
    playhead.seen(chunk, ptsUs, waitedMs);
  },
  onShown({ ptsUs, durationUs }, atMs) {
    sound.follow(ptsUs, atMs);
    playhead.shown(ptsUs);
    dispatch({ type: "page.shown", ptsUs, durationUs, atMs });
  },
  onSkipped(count) {
    dispatch({ type: "page.skipped", count });
  },
  onNeedKey() {
    connection.send("request_key_frame");
  },
  onFailure(error) {
    fail("decoder", `This browser could not decode the video: ${error.message}`);
    dialer.useCodecs(["jpeg"]);
    connection.reattach();
  },
};

const socketScreen = new Screen(page.part("picture"), screenEvents);
const peerScreen = new PeerScreen(page.part("video"), page.part("picture"), screenEvents);
/** @type {Screen | PeerScreen} the one of the transport in use */
let screen = socketScreen;

const sound = new Sound();
const playhead = new Playhead((report) => connection.send("playhead", report));

// --- what the person does ---

/**
 * Act in the next chunk: what the server has made and a person will not have seen by then is dropped.
 * @param {object} fields of a `push_action` @returns {string | null} its id
 */
function actNow(fields) {
  playhead.tell(); // so that the server knows what can be dropped
  return connection.send("push_action", { ...fields, act: "now" });
}

const held = new HeldKeys((target, edge) => {
  const id = actNow({ action: { [target.control]: target.key }, edge });
  if (id !== null && edge === "press") {
    dispatch({ type: "page.pressed", id, atMs: performance.now() });
  }
});

/** @param {string} text */
function say(text) {
  const id = connection.send("push_text", { text });
  unsaid = id === null ? text : null;
  if (id === null) fail("away", "The server cannot be reached. Your prompt will be sent when it can.");
  else dispatch({ type: "page.prompted", id, text });
}

/** @param {string} text @returns {boolean} whether it was sent */
function ask(text) {
  const id = connection.send("push_text", { text, mode: "turn" });
  if (id === null) fail("away", "The server cannot be reached. Ask again when it can.");
  else dispatch({ type: "page.asked", id, text });
  return id !== null;
}

/**
 * Choose a value; the page shows it until the server has answered.
 * @param {string} type of the command @param {string} name of the choice @param {number} value
 * @param {object} [fields] of the command
 */
function choose(type, name, value, fields = {}) {
  const id = connection.send(type, fields);
  if (id === null) fail("away", "The server cannot be reached. Try again when it can.");
  else dispatch({ type: "page.chosen", id, name, value });
}

/** @param {string} name of a parameter @param {number} value */
function turn(name, value) {
  choose("update", parameterKey(name), value, { parameters: { [name]: value } });
}

/** Read the counters of the connection: those here once a second, the server's every other time. */
async function measure() {
  const { attachment } = connection;
  if (attachment === null || document.hidden || isMeasuring) return;
  isMeasuring = true;
  try {
    measured += 1;
    const isAsked = measured % ASK_EVERY === 0; // between answers the last one is shown
    const asking = isAsked ? connection.stats() : view.served;
    const [counters, served] = await Promise.all([attachment.measure(), asking]);
    if (connection.attachment !== attachment) return; // another one, with counters of its own
    const { waitingMs } = screen;
    dispatch({ type: "page.measured", counters, served, atMs: performance.now(), waitingMs });
  } finally {
    isMeasuring = false;
  }
}

/** Try again at once after the page was hidden or without a network. */
function hurry() {
  if (["lost", "waiting"].includes(view.link) && !document.hidden) connection.retry();
}

function onVisibility() {
  for (const each of [socketScreen, peerScreen]) {
    if (document.hidden) each.hide();
    else each.show();
  }
  hurry();
}

const forced = query.get("codec");
const codecs = await findCodecs(forced);
const choices = new PageStorage(() => localStorage);
const choice = recallChoice(query.get("transport"), choices);
const dialer = new Dialer(choice, codecs, forced);
const opening = {
  model: query.get("model") ?? undefined,
  program: query.get("program") ?? undefined,
  voice: query.has("voice") || undefined, // where the server has one
};
const tickets = new StoredSession(new PageStorage(() => sessionStorage), navigator.locks, Tabs.ofBrowser());
const connection = new Connection(tickets, dialer, opening, {
  onMessage,
  onMedia,
  onTrack,
  expectsPictures: () => showsNow(view) && !document.hidden,
});
/** @type {import("./ui/limits.js").Browser} */
const browser = {
  isSecure: globalThis.isSecureContext === true,
  remembers: tickets.remembers,
  hasDevices: typeof navigator.mediaDevices?.getUserMedia === "function",
};
page.part("limits").textContent = limitsText(browser);
const modelMenu = new ModelMenu(page, (wanted) => connection.renew(wanted));
const inputs = new Inputs(
  page,
  connection,
  () => featuresOf(view.session).inputs,
  fail,
  () => dispatch({ type: "page.error_read" }),
  browser,
);
const keyButtons = new ControlButtons(page, held, (action, isFirst) => {
  return isFirst ? actNow({ action }) : connection.send("push_action", { action });
});
new Recorder(page, connection, () => view, choose, fail);
new Forks(page, connection, tickets, fail);
turnable = {
  sliders: new ParameterSliders(page.part("sliders"), turn),
  textSwitches: new ParameterSliders(page.part("text-switches"), turn),
};

page.part("transport").value = choice;
new Gestures(page, {
  held,
  keyButtons,
  say,
  ask,
  connection,
  dispatch,
  onSound() {
    if (view.transport !== "webrtc" && !sound.decodes) fail("sound", soundLimit(browser.isSecure));
    return sound.toggle();
  },
  onTransport(/** @type {import("./transport/transport_choice.js").Choice} */ wanted) {
    keepChoice(wanted, choices);
    dialer.choose(wanted);
    connection.reattach();
  },
  speaker: () => featuresOf(view.session).speaker,
}).listen();
document.addEventListener("visibilitychange", onVisibility);
addEventListener("online", hurry);
addEventListener("pagehide", ({ persisted }) => connection.hangUp(persisted));
addEventListener("pageshow", ({ persisted }) => persisted && connection.reattach());
setInterval(() => dispatch({ type: "page.tick", nowMs: performance.now() }), TICK_MS);
setInterval(measure, MEASURE_MS);
if (document.hidden) onVisibility();
await connection.run();
