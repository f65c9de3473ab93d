// The page: renders a view, and reads nothing back from the document.

import { featuresOf, wordingOf } from "./features.js";
import { isSpeaking } from "./narration.js";
import { StatsPanel } from "./stats_panel.js";
import { statusOf } from "./status.js";
import { NarrationList } from "./narration_list.js";
import { overlayOf } from "./overlay.js";
import { clipped, SPOKEN_CHARS, promptStatusText } from "./prompt_status.js";
import { isRecording } from "../state.js";

/** @typedef {import("../state.js").View} View */

export class Page {
  /** @type {Record<string, HTMLElement>} */
  #parts = {};
  #panel;
  #narration;
  #tools;
  /** @type {View | null} */
  #shown = null;

  /** @param {Document} document */
  constructor(document) {
    for (const part of document.querySelectorAll("[data-part]")) {
      const element = /** @type {HTMLElement} */ (part);
      this.#parts[element.dataset.part ?? ""] = element;
    }
    this.#panel = new StatsPanel(document);
    this.#narration = new NarrationList(this.#parts.lines);
    this.#tools = [...document.querySelectorAll("[data-command]")].map(
      (tool) => /** @type {HTMLElement} */ (tool),
    );
  }

  /** @param {string} name the value of a `data-part` @returns {any} its element */
  part(name) {
    return this.#parts[name];
  }

  /** @param {View} view @param {number} nowMs */
  render(view, nowMs) {
    this.#renderStatus(view, nowMs);
    this.#renderOverlay(view, nowMs);
    this.#panel.render(view, nowMs);
    const was = this.#shown;
    this.#shown = view;
    if (was?.announcement !== view.announcement) this.#text("announcement", view.announcement);
    if (was?.notice !== view.notice) this.#renderNotice(view);
    if (was?.promptChars !== view.promptChars) this.#renderLimit(view);
    if (was?.error !== view.error) this.#renderError(view);
    if (was?.session !== view.session || was?.link !== view.link) this.#renderSession(view);
    if (was?.session !== view.session || was?.promptStatus !== view.promptStatus) this.#renderPrompt(view);
    if (was?.session !== view.session || was?.lines !== view.lines) this.#renderNarration(view);
    if (was?.session !== view.session || was?.sound !== view.sound) this.#renderFeatures(view);
    if (was?.isHeard !== view.isHeard) {
      this.#parts.microphone.dataset.heard = String(view.isHeard);
    }
    if (was?.kept !== view.kept) this.#renderKept(view);
    this.#renderRecording(view);
    if (was?.media !== view.media || was?.transport !== view.transport) this.#renderMedia(view);
  }

  /** @param {string} name @param {string} text */
  #text(name, text) {
    const element = this.#parts[name];
    if (element.textContent !== text) element.textContent = text;
  }

  /** @param {View} view @param {number} nowMs */
  #renderStatus(view, nowMs) {
    const { tone, text } = statusOf(view, nowMs);
    this.#parts.status.dataset.tone = tone;
    this.#text("status-text", text);
  }

  /** @param {View} view @param {number} nowMs */
  #renderOverlay(view, nowMs) {
    const overlay = overlayOf(view, nowMs);
    this.#parts.overlay.hidden = overlay === null;
    this.#parts.viewport.dataset.covered = String(overlay !== null && view.media !== null);
    if (overlay === null) return;
    this.#text("overlay-title", overlay.title);
    this.#text("overlay-detail", overlay.detail);
    const action = this.#parts["overlay-action"];
    action.hidden = overlay.action === null;
    if (overlay.action !== null) {
      action.dataset.action = overlay.action.does;
      this.#text("overlay-action", overlay.action.label);
    }
  }

  /** @param {View} view */
  #renderError({ error }) {
    this.#parts.error.hidden = error === null;
    this.#parts.error.dataset.code = error?.code ?? "";
    this.#text("error-text", error?.message ?? "");
  }

  /** @param {View} view */
  #renderNotice({ notice }) {
    this.#parts.notice.hidden = notice === "";
    this.#text("notice", notice);
  }

  /** @param {View} view */
  #renderLimit({ promptChars }) {
    const field = /** @type {HTMLInputElement} */ (this.#parts.prompt);
    if (promptChars === null) field.removeAttribute("maxlength");
    else field.maxLength = promptChars;
  }

  /** @param {View} view */
  #renderSession(view) {
    const { session, link } = view;
    const state = link === "open" ? session.state : "";
    for (const tool of this.#tools) {
      tool.setAttribute("aria-disabled", String(!canUse(tool.dataset.command ?? "", state)));
    }
    this.#parts.badge.hidden = state !== "paused";
    this.#text("badge", "Paused");
    document.body.dataset.state = state;
    document.body.dataset.session = view.id;
  }

  /** @param {View} view */
  #renderPrompt({ session, promptStatus }) {
    const prompt = session?.prompt ?? "";
    const now = prompt === "" ? "" : `Now: ${prompt}`;
    const settled = promptStatus?.outcome === "applied" && !promptStatus.unknownWords.length && !promptStatus.truncatedAt;
    const text = promptStatus === null || settled ? now : promptStatusText(promptStatus);
    this.#text("now", text);
    this.#parts.now.title = text; // the page shows its first lines
    this.#parts.now.dataset.outcome = promptStatus?.outcome ?? "";
    this.#parts.now.dataset.unknown = promptStatus?.unknownWords.join(" ") ?? "";
    const told = clipped(prompt, SPOKEN_CHARS);
    const label = prompt === "" ? "The generated world" : `The generated world: ${told}`;
    this.#parts.picture.setAttribute("aria-label", label);
  }

  /** @param {View} view */
  #renderNarration({ session, lines }) {
    const { hasText, takesTurns } = featuresOf(session);
    this.#parts.narration.hidden = !hasText;
    if (!hasText) return;
    this.#parts["question-form"].hidden = !takesTurns;
    this.#parts.hush.setAttribute("aria-disabled", String(!isSpeaking(lines)));
    this.#narration.render(lines);
  }

  /** @param {View} view */
  #renderFeatures({ session, sound }) {
    const features = featuresOf(session);
    const { inputs, takesPrompt, takesTurns, hasSound, sliders } = features;
    this.#renderWording(wordingOf(features));
    this.#renderExamples(features.examplePrompts);
    this.#parts["hint-write"].hidden = !takesPrompt && !takesTurns;
    this.#parts.sound.hidden = !hasSound && sound === null;
    this.#parts.ask.hidden = !takesPrompt;
    const pictures = inputs.filter(({ kind }) => kind === "video");
    this.#parts.camera.hidden = !pictures.some(({ merge }) => merge === "latest");
    this.#parts["file-button"].hidden = pictures.length === 0;
    this.#parts.microphone.hidden = pictures.length === inputs.length;
    this.#parts["sliders-box"].hidden = sliders.length === 0;
  }

  /** @param {string[]} prompts */
  #renderExamples(prompts) {
    const { chips } = this.#parts;
    chips.hidden = prompts.length === 0;
    const shown = [...chips.querySelectorAll("button")].map((chip) => chip.textContent);
    if (shown.join("\n") === prompts.join("\n")) return; // so that a focused chip keeps the focus
    chips.replaceChildren(...prompts.map(chipOf));
  }

  /** @param {ReturnType<typeof wordingOf>} wording */
  #renderWording({ ask, example, send, said, question, questionExample }) {
    this.#text("ask-title", ask);
    this.#text("narration-title", said);
    this.#text("question-title", question);
    this.#parts["ask-send"].setAttribute("aria-label", send);
    /** @type {HTMLInputElement} */ (this.#parts.prompt).placeholder = example;
    /** @type {HTMLInputElement} */ (this.#parts.question).placeholder = questionExample;
  }

  /** @param {View} view */
  #renderRecording(view) {
    const { record, clip } = this.#parts;
    record.hidden = !view.canRecord;
    clip.hidden = view.clipS === 0;
    const isRunning = isRecording(view);
    record.setAttribute("aria-pressed", String(isRunning));
    this.#text("record-text", isRunning ? `Stop, ${timeOf(view.recordedUs ?? 0)}` : "Record");
  }

  /** @param {View} view */
  #renderKept({ kept }) {
    this.#parts.keep.hidden = kept === null;
    if (kept === null) return;
    const what = kept.kind === "clip" ? "A clip" : "A recording";
    this.#text("keep-text", `${what} of ${timeOf(kept.durationUs)}, ${sizeOf(kept.sizeBytes)}`);
  }

  /** @param {View} view */
  #renderMedia({ media, transport }) {
    if (media === null) return;
    const codec = media.codec.startsWith("avc1") ? "H.264" : media.codec.toUpperCase();
    const way = { webrtc: "WebRTC", websocket: "WebSocket" }[transport ?? "websocket"];
    this.#text("fine", `${media.width} × ${media.height} pixels, ${codec} over ${way}`);
    this.#parts.fine.dataset.codec = media.codec;
    this.#parts.fine.dataset.transport = transport ?? "";
  }
}

/** @param {string} prompt */
function chipOf(prompt) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = prompt;
  item.append(button);
  return item;
}

/** @param {string} command @param {string} state of the session; empty when there is no link */
function canUse(command, state) {
  if (command === "pause") return state === "active";
  if (command === "step" || command === "resume") return state === "paused";
  return state === "active" || state === "paused";
}

/** @param {number} us @returns {string} such as `1:05` */
function timeOf(us) {
  const seconds = Math.round(us / 1e6);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** @param {number} bytes @returns {string} such as `1.4 MB` */
function sizeOf(bytes) {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
