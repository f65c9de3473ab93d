// What the model says and what it was asked, as lines: an utterance each, its question above it.

/**
 * @typedef {object} Line
 * @property {string} key of its own for as long as the line is kept
 * @property {string | null} question what it answers; null when nobody asked
 * @property {string} stream
 * @property {string} text said so far
 * @property {"waiting" | "growing" | "done" | "broken" | "refused"} state
 *   waiting: the question is out; broken: it was interrupted
 * @property {number} [forgotten] the oldest messages, which gave way for the question
 * @property {string[]} [unknownWords] of the question, as its receipt says
 * @property {boolean} [isStale] whether more of it is told from its beginning: the line was cut
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

/** A question will never be answered. @param {Lines} lines @param {string | null | undefined} id @returns {Lines} */
export function refused(lines, id) {
  const isIt = (/** @type {Line} */ line) => line.key === id && line.state === "waiting";
  return changed(lines, isIt, (line) => ({ ...line, state: "refused" }));
}

/** A question was taken, and messages gave way for it. @param {Lines} lines @param {string} id @param {number} count @returns {Lines} */
export function forgetting(lines, id, count) {
  const isIt = (/** @type {Line} */ line) => line.key === id && count > 0;
  return changed(lines, isIt, (line) => ({ ...line, forgotten: count }));
}

/** A question's receipt came. @param {Lines} lines @param {string} id @param {string[]} unknownWords @returns {Lines} */
export function received(lines, id, unknownWords) {
  if (unknownWords.length === 0) return lines;
  return changed(lines, (line) => line.key === id, (line) => ({ ...line, unknownWords }));
}

/**
 * More was said.
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
    (line) => ({ ...line, state: "broken" }), // it speaks of something else
  );
  const grown = others.some((line) => line.key === key)
    ? changed(others, (line) => line.key === key, (line) => {
        const before = line.isStale && text !== "" ? "" : line.text;
        return { ...line, stream, text: before + text, state, isStale: false };
      })
    : [...others, { key, question: null, stream, text, state }];
  return kept(grown.filter((line) => !isEmpty(line)));
}

/** Another line to the server: it tells the newest utterance anew. @param {Lines} lines @returns {Lines} */
export function rejoined(lines) {
  return lines.map((line) => ({ ...line, isStale: true }));
}

/** Nothing that is unfinished will be gone on with. @param {Lines} lines @returns {Lines} */
export function brokenOff(lines) {
  const broken = changed(lines, (line) => OPEN.has(line.state), (line) => ({ ...line, state: "broken" }));
  return broken.some(isEmpty) ? broken.filter((line) => !isEmpty(line)) : broken;
}

/** Whether something is being said. @param {Lines} lines */
export function isSpeaking(lines) {
  return lines.some((line) => OPEN.has(line.state));
}

/** @param {Line} line that has ended before it said anything */
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
