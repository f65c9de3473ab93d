// What the program of a session can do beyond showing a world, from the server's view of it.

import { NOTHING_CHOSEN, parameterKey, shownValue } from "../input/choices.js";

/**
 * @typedef {object} Features
 * @property {boolean} takesPrompt whether the program reads prompts
 * @property {string[]} examplePrompts prompts that it understands
 * @property {string[]} exampleTurns likewise texts that can be said to it
 * @property {boolean} hasPictures whether there is anything to look at
 * @property {boolean} hasText whether it puts out text
 * @property {boolean} takesTurns whether it answers questions
 * @property {string | null} speaker the loop of the text, which `interrupt` can name
 * @property {Input[]} inputs media that it takes
 * @property {boolean} hasSound whether the program puts out sound; `voice` is a stream of its own
 * @property {Slider[]} sliders parameters that a person may change
 * @property {Slider[]} textSwitches those that switch the text, which are shown next to it
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
 *   label: string, stream?: string}} Slider `stream` is the output that it switches
 */

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
  const isOfText = (/** @type {Slider} */ { stream }) => text !== undefined && stream === text.name;
  const labelled = parameters.filter((/** @type {Slider} */ { label }) => label !== "");
  return {
    takesPrompt: session?.takes_prompt ?? true,
    examplePrompts: session?.example_prompts ?? [],
    exampleTurns: session?.example_turns ?? [],
    hasPictures: session?.streams === undefined || streams.some(
      (/** @type {{kind: string}} */ { kind }) => kind === "video",
    ),
    hasText: text !== undefined,
    takesTurns: Boolean(session?.takes_turns),
    speaker: text?.loop ?? null,
    inputs: session?.inputs ?? [],
    hasSound: streams.some((/** @type {{kind: string}} */ { kind }) => kind === "audio"),
    sliders: labelled.filter((/** @type {Slider} */ each) => !isOfText(each)),
    textSwitches: labelled.filter(isOfText),
  };
}

/** @param {{session: any}} view @returns {boolean} whether pictures should be coming */
export function showsNow({ session }) {
  return session?.state === "active" && featuresOf(session).hasPictures;
}

/**
 * The page's labels, which depend on whether the program shows pictures.
 * @param {Features} features
 */
export function wordingOf({ hasPictures, examplePrompts, exampleTurns }) {
  const [example = ""] = examplePrompts;
  const [questionExample = "Your question"] = exampleTurns;
  const examples = { example, questionExample };
  if (!hasPictures) {
    return {
      ask: "What should it keep in mind?", send: "Keep in mind",
      said: "What it says", question: "Ask it something", ...examples,
    };
  }
  return {
    ask: "What should the world become?",
    send: "Change the world",
    said: "What it sees",
    question: "Ask about what you see",
    ...examples,
  };
}

/** @param {string} name such as `narrated_world` @returns {string} for people */
export function titleOf(name) {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
