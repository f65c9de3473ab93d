// Keys, buttons and fingers that walk: they become presses and releases of a program's controls.

/** @typedef {{control: string, key: string}} Target what a key means to the program */
/** @typedef {(target: Target, edge: "press" | "release") => void} OnEdge */

const DIRECTIONS = {
  up: { keys: ["up", "forward"], codes: ["ArrowUp", "KeyW"] },
  left: { keys: ["left"], codes: ["ArrowLeft", "KeyA"] },
  down: { keys: ["down", "back", "backward"], codes: ["ArrowDown", "KeyS"] },
  right: { keys: ["right"], codes: ["ArrowRight", "KeyD"] },
};

/**
 * Find what each direction means to a program, from the controls that it declares.
 * @param {{name: string, merge: string, keys: string[]}[]} controls
 * @returns {Map<string, Target>} by direction; a program without one has no such entry
 */
export function findDirections(controls) {
  const found = new Map();
  for (const [direction, { keys }] of Object.entries(DIRECTIONS)) {
    for (const control of controls) {
      const key = keys.find((name) => control.keys.includes(name));
      if (control.merge === "edges" && key !== undefined && !found.has(direction)) {
        found.set(direction, { control: control.name, key });
      }
    }
  }
  return found;
}

/**
 * The direction of a key of the keyboard, by where it lies, so that WASD works on every layout.
 * @param {string} code
 */
export function directionOf(code) {
  const entries = Object.entries(DIRECTIONS);
  return entries.find(([, { codes }]) => codes.includes(code))?.[0];
}

/**
 * Which directions are held, and by what: W and an arrow may hold the same one, and it is let go
 * when the last of them is.
 */
export class HeldKeys {
  /** @type {Map<string, string>} direction by source */
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

  /** @param {string} source what is pressed, such as `KeyW` @param {string} direction */
  press(source, direction) {
    const target = this.#targets.get(direction);
    if (target === undefined || this.#sources.has(source)) return false;
    const already = this.held.includes(direction);
    this.#sources.set(source, direction);
    if (!already) this.#onEdge(target, "press");
    return true;
  }

  /** @param {string} source */
  release(source) {
    const direction = this.#sources.get(source);
    if (direction === undefined) return;
    this.#sources.delete(source);
    const target = this.#targets.get(direction);
    if (target !== undefined && !this.held.includes(direction)) this.#onEdge(target, "release");
  }

  /** Forget all that is held without saying so; true when something was. */
  forget() {
    const any = this.#sources.size > 0;
    this.#sources.clear();
    return any;
  }
}

/**
 * Walk with the keyboard. A browser tells nobody about a key that is let go while its window is
 * elsewhere, so `releaseAll` runs whenever the page loses the keyboard or is hidden.
 * @param {{window: EventTarget, document: EventTarget & {hidden: boolean}, held: HeldKeys,
 *   releaseAll: () => void}} parts
 */
export function listenToKeyboard({ window, document, held, releaseAll }) {
  window.addEventListener("keydown", (raw) => {
    const event = /** @type {KeyboardEvent} */ (raw);
    if (event.key === "Meta") releaseAll(); // the system keeps releases that happen under it
    const direction = directionOf(event.code);
    if (direction === undefined || isChord(event) || takesText(event.target)) return;
    event.preventDefault(); // arrows would scroll the page
    if (!event.repeat) held.press(event.code, direction);
  });
  window.addEventListener("keyup", (raw) => {
    held.release(/** @type {KeyboardEvent} */ (raw).code);
  });
  window.addEventListener("blur", releaseAll);
  window.addEventListener("pagehide", releaseAll);
  document.addEventListener("visibilitychange", () => document.hidden && releaseAll());
}

/**
 * Walk with a button of the page: by finger or mouse, by Enter or space while it has the focus, and
 * by a screen reader's click, which has no end and is a short press.
 * @param {HTMLElement} button @param {string} direction @param {HeldKeys} held
 */
export function listenToButton(button, direction, held) {
  const keySource = `button:${direction}`;
  const pointerSource = (/** @type {PointerEvent} */ event) => `pointer:${event.pointerId}`;
  button.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    button.setPointerCapture(event.pointerId);
    held.press(pointerSource(event), direction);
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
    if (!event.repeat) held.press(keySource, direction);
  });
  button.addEventListener("keyup", (event) => {
    if (event.key === " ") event.preventDefault(); // else some browsers add a click
    held.release(keySource);
  });
  button.addEventListener("blur", () => held.release(keySource));
  button.addEventListener("click", (event) => {
    if (event.detail !== 0) return; // a pointer, which was heard already
    if (held.press(keySource, direction)) held.release(keySource);
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
