// The model's utterances as lines, each with the question that it answers.

/**
 * @typedef {object} Line
 * @property {string} key unique while the line is kept
 * @property {string | null} question that it answers; null for an utterance without one
 * @property {string} stream
 * @property {string} text said so far
 * @property {"waiting" | "growing" | "done" | "broken" | "refused"} state
 *   waiting: the question was sent; broken: the utterance was interrupted
 * @property {number} [forgotten] how many of the oldest messages were dropped to make room for the question
 * @property {string[]} [unknownWords] of the question, from its receipt
 * @property {boolean} [isStale] whether its next delta begins at its first word, because the page attached again
 */

/** @typedef {readonly Line[]} Lines oldest first */

const LINES_KEPT = 40;
const OPEN = new Set(["waiting", "growing"]);

/** @type {Lines} */
export const NOTHING_SAID = Object.freeze([]);

/** A question was sent. @param {Lines} lines @param {string} id of its command @param {string} text @returns {Lines} */
export function asked(lines, id, text) {
  return kept([...lines, { key: id, question: text, stream: "", text: "", state: "waiting" }]);
}

/** A question was refused, or its turn dropped. @param {Lines} lines @param {string | null | undefined} id @returns {Lines} */
export function refused(lines, id) {
  const isIt = (/** @type {Line} */ line) => line.key === id && line.state === "waiting";
  return changed(lines, isIt, (line) => ({ ...line, state: "refused" }));
}

/** A question was accepted, and the oldest messages were dropped for it. @param {Lines} lines @param {string} id @param {number} count @returns {Lines} */
export function forgetting(lines, id, count) {
  const isIt = (/** @type {Line} */ line) => line.key === id && count > 0;
  return changed(lines, isIt, (line) => ({ ...line, forgotten: count }));
}

/** The receipt of a question came. @param {Lines} lines @param {string} id @param {string[]} unknownWords @returns {Lines} */
export function received(lines, id, unknownWords) {
  if (unknownWords.length === 0) return lines;
  return changed(lines, (line) => line.key === id, (line) => ({ ...line, unknownWords }));
}

/**
 * A `text.delta` came.
 * @param {Lines} lines
 * @param {{stream: string, text: string, utterance: number, final?: boolean,
 *   cut?: boolean, answers?: string | null}} delta
 * @returns {Lines}
 */
export function heard(lines, { stream, text, utterance, final, cut, answers }) {
  const said = `${stream}/${utterance}`;
  const key = lines.some((line) => line.key === answers) ? String(answers) : said;
  /** @type {Line["state"]} */
  const state = cut ? "broken" : final ? "done" : "growing";
  const others = changed(
    lines,
    (line) => line.stream === stream && line.key !== key && line.state === "growing",
    (line) => ({ ...line, state: "broken" }), // the model has begun another utterance
  );
  const grown = others.some((line) => line.key === key)
    ? changed(others, (line) => line.key === key, (line) => {
        const before = line.isStale && text !== "" ? "" : line.text;
        return { ...line, stream, text: before + text, state, isStale: false };
      })
    : [...others, { key, question: null, stream, text, state }];
  return kept(grown.filter((line) => !isEmpty(line)));
}

/** After attaching again the server sends the newest utterance from its start. @param {Lines} lines @returns {Lines} */
export function rejoined(lines) {
  return lines.map((line) => ({ ...line, isStale: true }));
}

/** Unfinished utterances will not be continued. @param {Lines} lines @returns {Lines} */
export function brokenOff(lines) {
  const broken = changed(lines, (line) => OPEN.has(line.state), (line) => ({ ...line, state: "broken" }));
  return broken.some(isEmpty) ? broken.filter((line) => !isEmpty(line)) : broken;
}

/** Whether an utterance is unfinished. @param {Lines} lines */
export function isSpeaking(lines) {
  return lines.some((line) => OPEN.has(line.state));
}

/** @param {Line} line that ended before its first word */
function isEmpty({ question, text, state }) {
  return question === null && text.trim() === "" && !OPEN.has(state);
}

/**
 * @param {Lines} lines @param {(line: Line) => boolean} which @param {(line: Line) => Line} change
 * @returns {Lines} the same ones when none changes
 */
function changed(lines, which, change) {
  return lines.some(which) ? lines.map((line) => (which(line) ? change(line) : line)) : lines;
}

/** @param {Lines} lines @returns {Lines} */
function kept(lines) {
  return lines.length > LINES_KEPT ? lines.slice(-LINES_KEPT) : lines;
}
