// The overlay over the picture, from the view.

import { featuresOf } from "./features.js";
import { statusOf } from "./status.js";

/** @typedef {import("../state.js").View} View */

/**
 * The overlay to show while there is something to wait for or to decide.
 * @param {View} view @param {number} nowMs
 * @returns {{title: string, detail: string,
 *   action: {label: string, does: "retry" | "renew"} | null} | null}
 */
export function overlayOf(view, nowMs) {
  const again = { label: "Try now", does: /** @type {const} */ ("retry") };
  if (view.link === "lost" || view.link === "waiting") {
    const { text } = statusOf(view, nowMs);
    const action = view.link === "lost" ? again : null; // in `waiting` the page polls by itself
    return { title: text, detail: view.reason, action };
  }
  if (view.link === "over") {
    const nextAction = view.nextAction ?? "retry";
    const retry = view.id === "" ? "Try again" : "Take me back";
    const action = { label: nextAction === "renew" ? "Start a new world" : retry, does: nextAction };
    return { title: view.reason, detail: view.ending, action };
  }
  if (view.link === "connecting" && view.notice !== "") {
    return { title: "Starting a new world", detail: "", action: null };
  }
  if (view.link === "connecting" && view.reason !== "") {
    return { title: "Reconnecting", detail: view.reason, action: null };
  }
  if (view.recovering) return { title: "Bringing the world back", detail: "", action: null };
  if (view.queued !== null) {
    const ahead = `You are number ${view.queued} in line.`;
    const detail = `Every place is taken; one becomes free when another person leaves. ${ahead}`;
    return { title: "Waiting for a free place", detail, action: null };
  }
  if (view.screen.shownAtMs.length === 0 && view.screen.seenUs === 0) {
    return beginningOf(view);
  }
  return null;
}

/** @param {View} view of a session that has shown nothing yet */
function beginningOf({ session }) {
  const { hasPictures, inputs, takesPrompt } = featuresOf(session);
  if (!hasPictures) {
    const detail = "This program shows no pictures: its answers appear next to the question.";
    return { title: "Ask it something", detail, action: null };
  }
  if (inputs.length === 0 || takesPrompt) {
    return { title: "Dreaming up a world", detail: "", action: null };
  }
  const detail = "Switch on the camera or the microphone, or choose a picture or a clip.";
  return { title: "Show it something", detail, action: null };
}
