// The pointer on the picture: dragging moves axes, and buttons of a mouse press keys.

/** @typedef {{x: number, y: number}} Point in CSS pixels */
/** @typedef {{at: Point, meaning: string | undefined, state: "undecided" | "drags" | "holds"}} Touch */

/** A touch that moves further than this within this time is a drag, not a press. */
const STILL_PX = 6;
const STILL_MS = 160;

/** Interprets a finger or a mouse: a swipe drags, a tap or a longer touch presses. */
export class PointerInput {
  #held;
  #onDrag;
  #later;
  /** @type {Map<string, Touch>} by source */
  #touches = new Map();
  #drags = false;
  /** @type {Map<number, string>} */
  #buttons = new Map();

  /**
   * @param {Pick<import("./keys.js").HeldKeys, "press" | "release">} held
   * @param {(by: Point) => void} onDrag
   * @param {(act: () => void, ms: number) => void} later
   */
  constructor(held, onDrag, later) {
    this.#held = held;
    this.#onDrag = onDrag;
    this.#later = later;
  }

  /** @param {Map<number, string>} buttons meaning by button @param {boolean} drags */
  setMeanings(buttons, drags) {
    this.#touches.clear();
    this.#buttons = buttons;
    this.#drags = drags;
  }

  /** @param {number} button @returns {boolean} whether it has an effect here */
  uses(button) {
    return this.#buttons.has(button) || (this.#drags && button === 0);
  }

  /** @param {string} source @param {number} button @param {Point} at */
  down(source, button, at) {
    if (!this.uses(button)) return;
    const meaning = this.#buttons.get(button);
    /** @type {Touch} */
    const touch = { at, meaning, state: meaning === undefined ? "drags" : "undecided" };
    this.#touches.set(source, touch);
    if (meaning === undefined) return;
    if (!this.#drags) this.#hold(source, touch);
    else {
      this.#later(() => {
        if (this.#touches.get(source) === touch) this.#hold(source, touch);
      }, STILL_MS);
    }
  }

  /** @param {string} source @param {Point} at */
  move(source, at) {
    const touch = this.#touches.get(source);
    if (touch === undefined || !this.#drags) return;
    const by = { x: at.x - touch.at.x, y: at.y - touch.at.y };
    if (touch.state === "undecided" && Math.hypot(by.x, by.y) <= STILL_PX) return;
    if (touch.state === "undecided") touch.state = "drags";
    touch.at = at;
    this.#onDrag(by);
  }

  /** @param {string} source */
  up(source) {
    const touch = this.#touches.get(source);
    if (touch === undefined) return;
    this.#touches.delete(source);
    if (touch.state === "undecided") this.#hold(source, touch); // a tap
    this.#held.release(source);
  }

  /** Forget all touches without releasing their keys. */
  forget() {
    this.#touches.clear();
  }

  /** @param {string} source @param {Touch} touch */
  #hold(source, touch) {
    if (touch.state !== "undecided" || touch.meaning === undefined) return;
    touch.state = "holds";
    this.#held.press(source, touch.meaning);
  }
}

/** @param {HTMLElement} picture @param {PointerInput} pointer */
export function listenToPicture(picture, pointer) {
  const sourceOf = (/** @type {PointerEvent} */ { pointerId }) => `pointer:${pointerId}`;
  const pointOf = (/** @type {PointerEvent} */ { clientX: x, clientY: y }) => ({ x, y });
  picture.addEventListener("pointerdown", (event) => {
    if (!pointer.uses(event.button)) return;
    picture.setPointerCapture(event.pointerId);
    pointer.down(sourceOf(event), event.button, pointOf(event));
  });
  picture.addEventListener("pointermove", (event) => pointer.move(sourceOf(event), pointOf(event)));
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
    picture.addEventListener(end, (event) => pointer.up(sourceOf(/** @type {PointerEvent} */ (event))));
  }
  picture.addEventListener("contextmenu", (event) => pointer.uses(2) && event.preventDefault());
}
