// The wiring: connection and screen bring messages, `reduce` makes the view, `Page` shows it.

import { Connection } from "./connection.js";
import { findDirections, HeldKeys, listenToButton, listenToKeyboard, takesText } from "./keys.js";
import { Page } from "./page.js";
import { request } from "./requests.js";
import { Screen } from "./screen.js";
import { Stage } from "./stage.js";
import { INITIAL_VIEW, reduce } from "./state.js";
import { TicketStore } from "./ticket.js";
import { findCodecs } from "./video.js";

const TICK_MS = 250;

const query = new URLSearchParams(location.search);
const page = new Page(document);
let view = INITIAL_VIEW;
let isDrawing = false;
/** A prompt that was asked for while there was no way to say it. @type {string | null} */
let unsaid = null;

/** @param {{type: string}} message */
function dispatch(message) {
  view = reduce(view, message);
  if (isDrawing) return;
  isDrawing = true;
  queueMicrotask(() => {
    isDrawing = false;
    page.render(view, performance.now());
  });
}

// --- what the server says ---

/** @param {any} message */
function onMessage(message) {
  dispatch(message);
  switch (message.type) {
    case "session.attached":
      onAttached(message.view);
      break;
    case "session.interrupted":
      screen.dropBefore(message.next_us);
      break;
    case "media.init":
      if (message.kind !== "video") break;
      screen.init(message);
      stage.resize();
      break;
    case "page.lost":
    case "page.over":
    case "page.new_session":
      held.forget(); // the server lets go of keys by itself
      screen.close();
      break;
  }
}

/** @param {any} session */
function onAttached(session) {
  const directions = findDirections(session.controls);
  held.setTargets(directions);
  page.part("pad").hidden = directions.size === 0;
  page.part("hint").hidden = directions.size === 0;
  if (unsaid !== null) say(unsaid);
  offerModels().catch(() => {}); // without a list there is no choice to offer
}

/** @param {import("./wire.js").MediaChunk} header @param {Uint8Array} payload */
function onMedia(header, payload) {
  dispatch(header);
  screen.push(header, payload);
}

// --- what is shown ---

const stage = new Stage(
  page.part("stage"),
  page.part("frame"),
  page.part("picture"),
  page.part("glow"),
);

const screen = new Screen(page.part("picture"), {
  onDrawn({ chunk, last, ptsUs }, atMs) {
    if (last) connection.send("playhead", { chunk, pts_us: ptsUs });
    stage.light(atMs);
  },
  onShown({ ptsUs, durationUs }, atMs) {
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
    connection.useCodecs(["jpeg"]);
  },
});

/** @param {string} code @param {string} message */
function fail(code, message) {
  dispatch({ type: "page.failed", code, message });
}

// --- what the person does ---

const held = new HeldKeys((target, edge) => {
  const id = connection.send("push_action", { action: { [target.control]: target.key }, edge });
  if (id !== null && edge === "press") {
    dispatch({ type: "page.pressed", id, atMs: performance.now() });
  }
});

function releaseAll() {
  if (held.forget()) connection.send("release_all");
}

/** @param {string} text */
function say(text) {
  const id = connection.send("push_text", { text });
  unsaid = id === null ? text : null;
  if (id === null) fail("away", "The server is away. Your wish is sent as soon as it is back.");
  else dispatch({ type: "page.prompted", id, text });
}

/** A page that was hidden, or without a network, need not wait any longer. */
function hurry() {
  if (view.link === "lost" && !document.hidden) connection.retry();
}

function listen() {
  listenToKeyboard({ window, document, held, releaseAll });
  for (const button of page.part("pad").querySelectorAll("button")) {
    listenToButton(button, button.dataset.direction, held);
  }
  for (const tool of document.querySelectorAll("[data-command]")) {
    tool.addEventListener("click", () => {
      const command = /** @type {HTMLElement} */ (tool).dataset.command ?? "";
      if (tool.getAttribute("aria-disabled") !== "true") connection.send(command);
    });
  }
  page.part("ask").addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    say(page.part("prompt").value);
    page.part("picture").focus(); // back to walking
  });
  page.part("chips").addEventListener("click", (/** @type {Event} */ event) => {
    const chip = /** @type {HTMLElement} */ (event.target).closest("button");
    if (chip === null) return;
    page.part("prompt").value = chip.textContent;
    say(chip.textContent ?? "");
  });
  page.part("prompt").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") page.part("picture").focus();
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || takesText(event.target)) return;
    event.preventDefault();
    page.part("prompt").select();
  });
  page.part("veil-action").addEventListener("click", () => {
    if (page.part("veil-action").dataset.action === "renew") connection.renew();
    else connection.retry();
  });
  page.part("error-close").addEventListener("click", () => dispatch({ type: "page.error_read" }));
  page.part("model").addEventListener("change", () => {
    connection.renew({ model: page.part("model").value, program: undefined });
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) screen.hide();
    else screen.show();
    hurry();
  });
  addEventListener("online", hurry);
  setInterval(() => dispatch({ type: "page.tick", nowMs: performance.now() }), TICK_MS);
}

/** Offer the models, when there is a choice. */
async function offerModels() {
  const { models } = await request("v1/models");
  page.part("model").replaceChildren(
    ...models.map((/** @type {{name: string}} */ { name }) => new Option(name, name)),
  );
  page.part("model").value = view.session.model;
  page.part("model-field").hidden = models.length < 2;
}

const forced = query.get("codec");
const codecs = await findCodecs(forced === "h264" || forced === "jpeg" ? forced : null);
const wish = { model: query.get("model") ?? undefined, program: query.get("program") ?? undefined };
const tickets = new TicketStore(sessionStorage, navigator.locks);
const connection = new Connection(tickets, codecs, wish, {
  onMessage,
  onMedia,
  expectsPictures: () => view.session?.state === "active" && !document.hidden,
});
if (document.hidden) screen.hide();
listen();
addEventListener("unhandledrejection", ({ reason }) => fail("page", String(reason)));
addEventListener("error", ({ message }) => fail("page", message));
await connection.run();
