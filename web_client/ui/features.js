// What the program of a session can do beyond showing a world, from the server's view of it.

import { NOTHING_CHOSEN, parameterKey, shownValue } from "../input/choices.js";

/**
 * @typedef {object} Features
 * @property {boolean} takesPrompt whether a prompt changes anything
 * @property {boolean} knowsExamples whether it was taught what the page's examples ask for
 * @property {boolean} hasPictures whether there is anything to look at
 * @property {boolean} hasText whether it says something
 * @property {boolean} takesTurns whether it can be asked
 * @property {string | null} speaker the loop that speaks, which can be interrupted by itself
 * @property {boolean | null} narrates whether the narrator is on; null without one
 * @property {Input[]} inputs what can be shown or said to it
 * @property {boolean} hasSound whether the program makes some; a voice comes beside it
 * @property {Slider[]} sliders numbers that a person may turn
 *
 * @typedef {object} Input
 * @property {string} name
 * @property {"video" | "audio"} kind
 * @property {"latest" | "fifo"} merge
 * @property {number} width
 * @property {number} height
 * @property {number} rate_hz
 * @property {number} capacity
 * @property {string} label
 *
 * @typedef {{name: string, value: number, default: number, low: number, high: number, integer: boolean,
 *   label: string}} Slider
 */

/** The parameter that is the narrator's switch. */
export const NARRATE = "narrate";

/**
 * @param {any} session a SessionView, or null
 * @param {import("../input/choices.js").Choices} [choices] shown instead of the session's values
 * @returns {Features}
 */
export function featuresOf(session, choices = NOTHING_CHOSEN) {
  const streams = session?.streams ?? [];
  const parameters = (session?.parameters ?? []).map((/** @type {Slider} */ parameter) => {
    const { name, value } = parameter;
    return { ...parameter, value: shownValue(choices, parameterKey(name), value) };
  });
  const text = streams.find((/** @type {{kind: string}} */ { kind }) => kind === "text");
  const narrate = parameters.find((/** @type {Slider} */ { name }) => name === NARRATE);
  return {
    takesPrompt: session?.takes_prompt ?? true,
    knowsExamples: /^pocket\b/.test(session?.model ?? ""),
    hasPictures: session?.streams === undefined || streams.some(
      (/** @type {{kind: string}} */ { kind }) => kind === "video",
    ),
    hasText: text !== undefined,
    takesTurns: Boolean(session?.takes_turns),
    speaker: text?.loop ?? null,
    narrates: narrate === undefined ? null : narrate.value > 0,
    inputs: session?.inputs ?? [],
    hasSound: streams.some((/** @type {{kind: string}} */ { kind }) => kind === "audio"),
    sliders: parameters.filter((/** @type {Slider} */ { name, label }) => name !== NARRATE && label !== ""),
  };
}

/** @param {{session: any}} view @returns {boolean} whether pictures are to be expected now */
export function showsNow({ session }) {
  return session?.state === "active" && featuresOf(session).hasPictures;
}

/**
 * What the page calls things, which depends on whether there is anything to see.
 * @param {Features} features
 */
export function wordingOf({ hasPictures, knowsExamples }) {
  if (!hasPictures) {
    return {
      ask: "What should it keep in mind?", example: "", send: "Keep in mind",
      said: "What it says", question: "Ask it something", questionExample: "Your question",
    };
  }
  return {
    ask: "What should the world become?",
    example: knowsExamples ? "a frozen lake land at night" : "",
    send: "Change the world",
    said: "What it sees",
    question: "Ask about what you see",
    questionExample: "Where is the water?",
  };
}

/** @param {string} name such as `narrated_world` @returns {string} for people */
export function titleOf(name) {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
