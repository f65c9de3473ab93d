// Keys, buttons and touches become presses and releases of a program's controls.

/** @typedef {{control: string, key: string}} Target what a key means to the program */
/** @typedef {(target: Target, edge: "press" | "release") => void} OnEdge */

/** Names of programs for each direction, and the keys of the keyboard for it on every layout. */
export const DIRECTIONS = {
  up: { keys: ["up", "forward"], codes: ["ArrowUp", "KeyW"] },
  left: { keys: ["left"], codes: ["ArrowLeft", "KeyA"] },
  down: { keys: ["down", "back", "backward"], codes: ["ArrowDown", "KeyS"] },
  right: { keys: ["right"], codes: ["ArrowRight", "KeyD"] },
};

/** Letters that are directions in a control that has all four of them. */
const LETTERS = { up: "w", left: "a", down: "s", right: "d" };

/**
 * Find what each direction means to a program, from the controls that it declares.
 * @param {{name: string, merge: string, keys: string[]}[]} controls
 * @returns {Map<string, Target>} by direction; a program without one has no such entry
 */
export function findDirections(controls) {
  const found = new Map();
  for (const [direction, { keys }] of Object.entries(DIRECTIONS)) {
    for (const control of controls) {
      const key = namesIn(control, direction, keys).find((name) => control.keys.includes(name));
      if (control.merge === "edges" && key !== undefined && !found.has(direction)) {
        found.set(direction, { control: control.name, key });
      }
    }
  }
  return found;
}

/** @param {{keys: string[]}} control @param {string} direction @param {string[]} names */
function namesIn(control, direction, names) {
  const hasLetters = Object.values(LETTERS).every((letter) => control.keys.includes(letter));
  return hasLetters ? [...names, LETTERS[/** @type {"up"} */ (direction)]] : names;
}

/**
 * Which keys of the program are held, and by what. W and an arrow may hold the same one, which is
 * released with the last of them. Each has a meaning: the name of a direction, or its own.
 */
export class HeldKeys {
  /** @type {Map<string, string>} meaning by source */
  #sources = new Map();
  /** @type {Map<string, Target>} */
  #targets = new Map();
  #onEdge;

  /** @param {OnEdge} onEdge */
  constructor(onEdge) {
    this.#onEdge = onEdge;
  }

  get held() {
    return [...new Set(this.#sources.values())];
  }

  /** @param {Map<string, Target>} targets */
  setTargets(targets) {
    this.#targets = targets;
  }

  /** @param {string} source what is pressed, such as `KeyW` @param {string} meaning */
  press(source, meaning) {
    const target = this.#targets.get(meaning);
    if (target === undefined || this.#sources.has(source)) return false;
    const already = this.held.includes(meaning);
    this.#sources.set(source, meaning);
    if (!already) this.#onEdge(target, "press");
    return true;
  }

  /** @param {string} source */
  release(source) {
    const meaning = this.#sources.get(source);
    if (meaning === undefined) return;
    this.#sources.delete(source);
    const target = this.#targets.get(meaning);
    if (target !== undefined && !this.held.includes(meaning)) this.#onEdge(target, "release");
  }

  /** Forget all held keys without sending releases; true when there were any. */
  forget() {
    const any = this.#sources.size > 0;
    this.#sources.clear();
    return any;
  }
}

/**
 * Play with the keyboard. A page is not told of a key that is released while another window has the
 * focus, so `releaseAll` runs whenever the page loses the focus or is hidden.
 * @param {{window: EventTarget, document: EventTarget & {hidden: boolean}, held: HeldKeys,
 *   releaseAll: () => void, meaningOf: (code: string) => string | undefined}} parts
 */
export function listenToKeyboard({ window, document, held, releaseAll, meaningOf }) {
  window.addEventListener("keydown", (raw) => {
    const event = /** @type {KeyboardEvent} */ (raw);
    if (event.key === "Meta") releaseAll(); // the system swallows releases of other keys while it is held
    const meaning = meaningOf(event.code);
    if (meaning === undefined || isChord(event) || takesText(event.target)) return;
    if (event.code === "Space" && isPressable(event.target)) return;
    event.preventDefault(); // arrows and space would scroll the page
    if (!event.repeat) held.press(event.code, meaning);
  });
  window.addEventListener("keyup", (raw) => {
    held.release(/** @type {KeyboardEvent} */ (raw).code);
  });
  window.addEventListener("blur", releaseAll);
  window.addEventListener("pagehide", releaseAll);
  document.addEventListener("visibilitychange", () => document.hidden && releaseAll());
}

/**
 * Play with a button of the page: by finger or mouse, by Enter or space while it has the focus, and
 * by a screen reader's click, which is a short press.
 * @param {HTMLElement} button @param {string} meaning
 * @param {Pick<HeldKeys, "press" | "release">} held
 */
export function listenToButton(button, meaning, held) {
  const keySource = `button:${meaning}`;
  const pointerSource = (/** @type {PointerEvent} */ event) => `pointer:${event.pointerId}`;
  button.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    button.setPointerCapture(event.pointerId);
    held.press(pointerSource(event), meaning);
  });
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
    button.addEventListener(end, (event) => {
      held.release(pointerSource(/** @type {PointerEvent} */ (event)));
    });
  }
  button.addEventListener("contextmenu", (event) => event.preventDefault());
  button.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (!event.repeat) held.press(keySource, meaning);
  });
  button.addEventListener("keyup", (event) => {
    if (event.key === " ") event.preventDefault(); // otherwise some browsers add a click
    held.release(keySource);
  });
  button.addEventListener("blur", () => held.release(keySource));
  button.addEventListener("click", (event) => {
    if (event.detail !== 0) return; // of a pointer, which was handled already
    if (held.press(keySource, meaning)) held.release(keySource);
  });
}

/** @param {KeyboardEvent} event */
function isChord(event) {
  return event.ctrlKey || event.metaKey || event.altKey || event.isComposing;
}

/**
 * Whether what has the focus takes letters and arrows for itself.
 * @param {EventTarget | null} target
 */
export function takesText(target) {
  const element = /** @type {HTMLElement | null} */ (target);
  return element?.closest?.("input, textarea, select, [contenteditable]") != null;
}

/** @param {EventTarget | null} target what has the focus, which space may press */
function isPressable(target) {
  const element = /** @type {HTMLElement | null} */ (target);
  return element?.closest?.("button, a, summary, video") != null;
}
