// What keyboard, mouse and buttons mean to a program, from its declared controls.

import { DIRECTIONS, findDirections } from "./keys.js";

/**
 * @typedef {{name: string, merge: string, keys: string[], low?: number, high?: number,
 *   label?: string, bindings?: Record<string, string[]>, drag?: "" | "x" | "y"}} Control as a
 *   SessionView declares it; `bindings` are codes of the keyboard, `MouseLeft` and `MouseRight`
 *
 * @typedef {{meaning: string, label: string, told: string}} KeyButton a key that has a button of its
 *   own; `told` names the key or mouse button that presses it; empty without one
 *
 * @typedef {object} Bindings
 * @property {Map<string, import("./keys.js").Target>} targets by meaning: a direction or a keyButton's
 * @property {Map<string, string>} codes meaning by the code of a key of the keyboard
 * @property {Map<number, string>} buttons meaning by the button of a mouse on the picture
 * @property {KeyButton[]} keyButtons in the order in which they are declared
 *
 * @typedef {{name: string, low: number, high: number, label: string, drag: "" | "x" | "y"}} Axis
 */

/** Buttons of a mouse, as a binding names them. @type {Record<string, number>} */
const MOUSE = { MouseLeft: 0, MouseRight: 2 };
/** Keys of the keyboard that a program may name its own keys after. @type {Record<string, string[]>} */
const NAMED = { space: ["Space"], shift: ["ShiftLeft", "ShiftRight"] };
/** @type {Record<string, string>} */
const TOLD = { Space: "Space", ShiftLeft: "Shift", 0: "Left mouse", 2: "Right mouse" };
const LETTER = /^[a-z]$/i;
const ENDS_IN_DIGIT = /(?:^|[^\d])(\d)$/;

/** @param {Control[]} controls @returns {Bindings} */
export function bindingsOf(controls) {
  const targets = findDirections(controls);
  const walks = new Set([...targets.values()].map(({ control, key }) => `${control}:${key}`));
  const codes = new Map();
  const buttons = new Map();
  const extras = controls
    .filter(({ merge }) => merge === "edges")
    .flatMap(({ name, keys, bindings = {} }) => {
      return keys.map((key) => ({ control: name, key, bound: bindings[key] ?? [], meaning: `${name}:${key}` }));
    })
    .filter(({ meaning }) => !walks.has(meaning));
  for (const { control, key, meaning } of extras) targets.set(meaning, { control, key });
  for (const { bound, meaning } of extras) {
    for (const name of bound.filter((each) => each in MOUSE && !buttons.has(MOUSE[each]))) {
      buttons.set(MOUSE[name], meaning);
    }
    bind(codes, bound.filter((name) => !(name in MOUSE)), meaning);
  }
  for (const { key, bound, meaning } of extras) {
    if (bound.length === 0) bind(codes, codesNamedBy(key), meaning);
  }
  for (const [direction, { codes: usual }] of Object.entries(DIRECTIONS)) {
    if (!targets.has(direction)) continue;
    for (const code of usual) if (!codes.has(code)) codes.set(code, direction);
  }
  const bound = new Set([...codes.values(), ...buttons.values()]);
  for (const { key, meaning } of extras.filter(({ meaning: each }) => !bound.has(each))) {
    const letter = [...key.toUpperCase()].find((each) => isFreeLetter(each, codes));
    if (letter !== undefined) codes.set(`Key${letter}`, meaning);
  }
  const keyButtons = extras.map(({ key, meaning }) => {
    return { meaning, label: wordsOf(key), told: toldOf(meaning, codes, buttons) };
  });
  return { targets, codes, buttons, keyButtons };
}

/** @param {Control[]} controls @returns {Axis[]} controls that are moved by an amount */
export function axesOf(controls) {
  return controls
    .filter(({ merge }) => merge === "sum")
    .map(({ name, low = -1, high = 1, label = "", drag = "" }) => {
      return { name, low, high, label: wordsOf(label || name), drag };
    });
}

/**
 * Which axes dragging moves: those that say so, or the first two where none does.
 * @param {Axis[]} axes
 * @returns {{across: Axis | undefined, down: Axis | undefined}}
 */
export function draggedOf(axes) {
  if (axes.every(({ drag }) => drag === "")) return { across: axes[0], down: axes[1] };
  return { across: axes.find(({ drag }) => drag === "x"), down: axes.find(({ drag }) => drag === "y") };
}

/** @param {string} name such as `look_up`, `lookUp` or `r` @returns {string} for people */
export function wordsOf(name) {
  const spaced = name.replace(/([a-z])([A-Z])/g, (_, end, start) => `${end} ${start.toLowerCase()}`);
  const words = spaced.replaceAll(/[._]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** @param {string} key @returns {string[]} codes of the keyboard that its name suggests */
function codesNamedBy(key) {
  if (LETTER.test(key)) return [`Key${key.toUpperCase()}`];
  const digit = ENDS_IN_DIGIT.exec(key)?.[1];
  return NAMED[key.toLowerCase()] ?? (digit === undefined ? [] : [`Digit${digit}`]);
}

/** @param {Map<string, string>} codes @param {string[]} wanted @param {string} meaning */
function bind(codes, wanted, meaning) {
  if (wanted.some((code) => codes.has(code))) return;
  for (const code of wanted) codes.set(code, meaning);
}

/** @param {string} letter @param {Map<string, string>} codes */
function isFreeLetter(letter, codes) {
  const isWalking = "WASD".includes(letter); // left free, because players keep their fingers there
  return LETTER.test(letter) && !isWalking && !codes.has(`Key${letter}`);
}

/** @param {string} meaning @param {Map<string, string>} codes @param {Map<number, string>} buttons */
function toldOf(meaning, codes, buttons) {
  const sources = [...codes, ...buttons];
  const source = String(sources.find(([, each]) => each === meaning)?.[0] ?? "");
  return TOLD[source] ?? source.replace(/^(Key|Digit)/, "");
}
