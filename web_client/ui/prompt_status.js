// A prompt that was sent and its outcome, in words.

/**
 * @typedef {object} PromptStatus
 * @property {string} id the command
 * @property {string} text
 * @property {"asked" | "applied" | "replaced" | "refused"} outcome
 * @property {string[]} unknownWords words that the model does not know
 * @property {number | null} truncatedAt where a text that was too long was cut
 */

/** Longest text that is read aloud in full. */
export const SPOKEN_CHARS = 120;

const WORD = /[\p{L}\p{N}'’-]+/gu;
/** Words that carry no meaning by themselves. */
const SMALL_WORDS = new Set(
  "a an and are as at by for from in into is it its my of on or some the this to with".split(" "),
);

/** @param {string} id @param {string} text @returns {PromptStatus} */
export function newPromptStatus(id, text) {
  return { id, text, outcome: "asked", unknownWords: [], truncatedAt: null };
}

/** @param {PromptStatus} promptStatus @param {number} [limit] characters of the prompt, at most @returns {string} */
export function promptStatusText({ text, outcome, unknownWords, truncatedAt }, limit = Infinity) {
  const what = text === "" ? "no prompt" : clipped(text, limit);
  const unknown = unknownWords.length
    ? `I do not know: ${clipped(unknownWords.join(", "), limit)}.`
    : "";
  if (outcome === "applied" && isAllUnknown(text, unknownWords)) {
    return `${unknown} The world stays as it is.`;
  }
  const cut = truncatedAt === null ? "" : `I read only the first ${truncatedAt} words.`;
  const says = {
    asked: `On its way: ${what}.`,
    applied: `The world follows: ${what}.`,
    replaced: `A newer prompt replaced: ${what}.`,
    refused: `Refused: ${what}.`,
  };
  return [says[outcome], unknown, cut].filter((part) => part !== "").join(" ");
}

/** @param {string} text @param {number} limit */
export function clipped(text, limit) {
  return text.length <= limit ? text : `${text.slice(0, limit).trimEnd()}…`;
}

/** @param {string} text @param {string[]} unknownWords */
function isAllUnknown(text, unknownWords) {
  const unknown = new Set(unknownWords.flatMap(wordsOf));
  const asking = wordsOf(text).filter((word) => !SMALL_WORDS.has(word) || unknown.has(word));
  return unknown.size > 0 && asking.every((word) => unknown.has(word));
}

/** @param {string} text @returns {string[]} */
function wordsOf(text) {
  return text.toLowerCase().match(WORD) ?? [];
}
