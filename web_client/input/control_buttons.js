// The controls of a program on the page: buttons for its keys, dragging, and axes.

import { AxisPump } from "./axis_pump.js";
import { axesOf, bindingsOf, draggedOf } from "./bindings.js";
import { PointerInput, listenToPicture } from "./pointer_input.js";
import { HeldKeys, listenToButton } from "./keys.js";

/** @typedef {import("./bindings.js").Axis} Axis */

const LEAN_EVERY_MS = 100;
const LEAN_SHARE = 0.05;

export class ControlButtons {
  #page;
  #held;
  #pump;
  #pointer;
  #leaning;
  /** @type {Map<string, Axis>} */
  #axes = new Map();
  /** @type {Map<string, ReturnType<typeof setInterval>>} */
  #timers = new Map();
  #bindings = bindingsOf([]);
  /** What the buttons were built for, so that the same ones are not rebuilt and keep the focus. */
  #shown = "";

  /**
   * @param {import("../ui/page.js").Page} page
   * @param {HeldKeys} held
   * @param {(action: Record<string, number>, isFirst: boolean) => string | null} send a movement
   */
  constructor(page, held, send) {
    this.#page = page;
    this.#held = held;
    this.#pump = new AxisPump(send, later);
    this.#pointer = new PointerInput(held, (by) => this.#drag(by), later);
    this.#leaning = new HeldKeys(({ control, key }, edge) => this.#lean(control, Number(key), edge));
    listenToPicture(page.part("picture"), this.#pointer);
  }

  /** @param {string} code of a key of the keyboard @returns {string | undefined} */
  meaningOf(code) {
    return this.#bindings.codes.get(code);
  }

  /** @param {any} session a SessionView */
  show({ controls }) {
    this.forget();
    const bindings = bindingsOf(controls);
    const axes = axesOf(controls);
    this.#bindings = bindings;
    this.#axes = new Map(axes.map((axis) => [axis.name, axis]));
    this.#held.setTargets(bindings.targets);
    this.#pointer.setMeanings(bindings.buttons, axes.length > 0);
    const leans = axes.flatMap(({ name }) => ["-1", "1"].map((key) => ({ control: name, key })));
    this.#leaning.setTargets(new Map(leans.map((to) => [`${to.control}:${to.key}`, to])));
    const isWalked = ["up", "left", "down", "right"].some((each) => bindings.targets.has(each));
    this.#page.part("pad").hidden = !isWalked;
    this.#page.part("hint-walk").hidden = !isWalked;
    this.#build(bindings.keyButtons, axes);
    const { style } = this.#page.part("picture");
    style.touchAction = axes.length > 0 ? "none" : bindings.buttons.size > 0 ? "manipulation" : "";
  }

  /** @param {string | null | undefined} id a command that has its receipt or was refused */
  settled(id) {
    this.#pump.settled(id);
  }

  /** Stop all movement. Held keys are released by `HeldKeys`. */
  forget() {
    for (const timer of this.#timers.values()) clearInterval(timer);
    this.#timers.clear();
    this.#leaning.forget();
    this.#pointer.forget();
    this.#pump.forget();
  }

  /** @param {import("./bindings.js").KeyButton[]} keyButtons @param {Axis[]} axes */
  #build(keyButtons, axes) {
    const wanted = JSON.stringify([keyButtons, axes]);
    if (wanted === this.#shown) return;
    this.#shown = wanted;
    const box = this.#page.part("key-buttons");
    box.hidden = keyButtons.length + axes.length === 0;
    const about = hintOf(axes);
    box.replaceChildren(
      ...keyButtons.map((keyButton) => this.#keyButtonOf(keyButton)),
      ...axes.map((axis) => this.#axisOf(axis)),
      ...(about === "" ? [] : [element("p", "about", about)]),
    );
  }

  /** @param {import("./bindings.js").KeyButton} keyButton */
  #keyButtonOf({ meaning, label, told }) {
    const button = buttonOf(label);
    button.title = told === "" ? `Hold for ${label}` : `Hold for ${label}, or press ${told}`;
    button.append(element("span", "", label));
    if (told !== "" && told !== label) button.append(element("kbd", "", told));
    listenToButton(button, meaning, this.#held);
    return button;
  }

  /** @param {Axis} axis */
  #axisOf({ name, label, low, high }) {
    const group = element("div", "axis", "");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", label);
    const [less, more] = [buttonOf(`${label} less`), buttonOf(`${label} more`)];
    for (const [button, sign, key] of /** @type {const} */ ([[less, "−", "-1"], [more, "+", "1"]])) {
      button.textContent = sign;
      button.title = `Hold for ${button.getAttribute("aria-label")}`;
      listenToButton(button, `${name}:${key}`, this.#leaning);
    }
    less.hidden = low >= 0;
    more.hidden = high <= 0;
    group.append(less, element("span", "", label), more);
    return group;
  }

  /** @param {string} name @param {number} sign @param {"press" | "release"} edge */
  #lean(name, sign, edge) {
    const source = `${name}:${sign}`;
    clearInterval(this.#timers.get(source));
    this.#timers.delete(source);
    const axis = this.#axes.get(name);
    if (edge === "release" || axis === undefined) return;
    const move = () => this.#pump.move(axis, sign * LEAN_SHARE);
    move();
    this.#timers.set(source, setInterval(move, LEAN_EVERY_MS));
  }

  /** @param {{x: number, y: number}} by in CSS pixels */
  #drag(by) {
    const { across, down } = draggedOf([...this.#axes.values()]);
    const { clientWidth, clientHeight } = this.#page.part("picture");
    if (across !== undefined) this.#pump.move(across, by.x / Math.max(1, clientWidth));
    if (down !== undefined) this.#pump.move(down, by.y / Math.max(1, clientHeight));
  }
}

/** @param {() => void} act @param {number} ms */
function later(act, ms) {
  setTimeout(act, ms);
}

/** @param {Axis[]} axes @returns {string} how to move them, for people */
export function hintOf(axes) {
  const { across, down } = draggedOf(axes);
  const ways = [
    ...(across === undefined ? [] : [`sideways for ${across.label}`]),
    ...(down === undefined ? [] : [`up or down for ${down.label}`]),
  ];
  return ways.length === 0 ? "" : `Drag the picture ${ways.join(", ")}`;
}

/** @param {string} name */
function buttonOf(name) {
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-label", name);
  return button;
}

/** @param {string} tag @param {string} name @param {string} text */
function element(tag, name, text) {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text;
  return made;
}
