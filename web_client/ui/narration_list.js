// The narration on the page: lines that grow, and are read aloud once they are complete.

/** @typedef {import("./narration.js").Line} Line */

const NOTES = { broken: "interrupted", refused: "not taken" };
const OPEN = new Set(["waiting", "growing"]);

export class NarrationList {
  #list;
  /** @type {Map<string, {item: HTMLElement, line: Line}>} */
  #shown = new Map();

  /** @param {HTMLElement} list a live region */
  constructor(list) {
    this.#list = list;
  }

  /** @param {import("./narration.js").Lines} lines */
  render(lines) {
    const isAtEnd = this.#list.scrollHeight - this.#list.scrollTop - this.#list.clientHeight < 24;
    const keys = new Set(lines.map(({ key }) => key));
    for (const [key, { item }] of this.#shown) {
      if (keys.has(key)) continue;
      item.remove();
      this.#shown.delete(key);
    }
    for (const line of lines) this.#renderLine(line);
    if (isAtEnd) this.#list.scrollTop = this.#list.scrollHeight;
  }

  /** @param {Line} line */
  #renderLine(line) {
    const shown = this.#shown.get(line.key);
    if (shown?.line === line) return;
    const item = shown?.item ?? document.createElement("div");
    this.#shown.set(line.key, { item, line });
    item.dataset.state = line.state;
    // Hidden from screen readers while it grows, so that they read it once it is complete.
    if (OPEN.has(line.state)) item.setAttribute("aria-hidden", "true");
    else item.removeAttribute("aria-hidden");
    item.replaceChildren(...partsOf(line));
    if (shown === undefined) this.#list.append(item);
  }
}

/** @param {Line} line */
function partsOf({ question, text, state, forgotten = 0, unknownWords = [] }) {
  const parts = [];
  if (question !== null) parts.push(element("p", "question", question));
  if (forgotten > 0) parts.push(element("small", "note", forgottenOf(forgotten)));
  if (text.trim() !== "") parts.push(element("p", "said", text.trim()));
  const isSilent = question !== null && text.trim() === "";
  const note = isSilent ? silenceOf(state) : NOTES[/** @type {"broken"} */ (state)];
  if (note !== undefined) parts.push(element("small", "note", note));
  if (unknownWords.length > 0) {
    parts.push(element("small", "note", `I do not know: ${unknownWords.join(", ")}.`));
  }
  return parts;
}

/** @param {number} count */
function forgottenOf(count) {
  return count === 1 ? "the oldest message is forgotten" : `the oldest ${count} messages are forgotten`;
}

/** @param {Line["state"]} state of an answer without a word */
function silenceOf(state) {
  if (OPEN.has(state)) return "thinking…";
  return NOTES[/** @type {"broken"} */ (state)] ?? "no answer";
}

/** @param {string} tag @param {string} name @param {string} text */
function element(tag, name, text) {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text;
  return made;
}
