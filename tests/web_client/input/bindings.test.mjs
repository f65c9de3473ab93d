import assert from "node:assert/strict";
import { test } from "node:test";

import { hintOf } from "../../../web_client/input/control_buttons.js";
import { axesOf, bindingsOf, draggedOf, wordsOf } from "../../../web_client/input/bindings.js";

/** @param {string[]} keys */
function edges(...keys) {
  return { name: "play", merge: "edges", keys };
}

/** @param {string} name @param {"" | "x" | "y"} drag */
function sum(name, low = -1, high = 1, drag = "") {
  return { name, merge: "sum", keys: [], low, high, label: "", drag };
}

const CSGO = {
  ...edges(..."wasd", "space", "ctrl", "shift", "1", "r", "left_click", "right_click"),
  bindings: { ctrl: ["KeyC"], left_click: ["MouseLeft"], right_click: ["MouseRight"] },
};

test("every key that is no direction has a button, which tells what else presses it", () => {
  const { keyButtons } = bindingsOf([CSGO]);
  assert.deepEqual(keyButtons.map(({ label, told }) => `${label}: ${told}`), [
    "Space: Space", "Ctrl: C", "Shift: Shift", "1: 1", "R: R",
    "Left click: Left mouse", "Right click: Right mouse",
  ]);
});

test("WASD press w, a, s and d where the program calls its directions so", () => {
  const { targets, codes } = bindingsOf([CSGO]);
  const pressed = ["KeyW", "KeyA", "KeyS", "KeyD", "ArrowUp"].map(
    (code) => targets.get(codes.get(code) ?? "")?.key,
  );
  assert.deepEqual(pressed, ["w", "a", "s", "d", "w"]);
});

test("a letter that is a key beside directions is pressed by its own key", () => {
  const { targets, codes } = bindingsOf([edges("up", "down", "left", "right", "a", "b")]);
  assert.equal(targets.get(codes.get("KeyA") ?? "")?.key, "a");
  assert.equal(targets.get(codes.get("ArrowLeft") ?? "")?.key, "left");
  assert.equal(targets.get(codes.get("KeyD") ?? "")?.key, "right");
});

test("a digit at the end of a name is a key of the keyboard, unless one before has it", () => {
  const { keyButtons } = bindingsOf([edges("hotbar.1", "slot1", "hotbar.12")]);
  assert.equal(keyButtons[0].told, "1");
  assert.notEqual(keyButtons[1].told, "1");
  assert.doesNotMatch(keyButtons[2].told, /\d/);
});

test("a word of the program's own takes a letter of it that is free", () => {
  const { keyButtons, codes, targets } = bindingsOf([edges("forward", "stoke", "t")]);
  assert.deepEqual(keyButtons.map(({ label, told }) => [label, told]), [["Stoke", "O"], ["T", "T"]]);
  assert.equal(targets.get(codes.get("KeyO") ?? "")?.key, "stoke");
});

test("no two keys share a key of the keyboard, and Ctrl and Tab are left to the browser", () => {
  const bindings = { jump: ["Space"], sneak: ["ShiftLeft", "ShiftRight"], hit: ["MouseLeft"], use: ["MouseLeft"] };
  const play = { ...edges("space", "jump", "sneak", "shift", "ctrl", "tab", "hit", "use"), bindings };
  const { keyButtons, codes } = bindingsOf([play]);
  const told = keyButtons.map((keyButton) => keyButton.told).filter((each) => each !== "");
  assert.equal(new Set(told).size, told.length);
  assert.ok(![...codes.keys()].some((code) => /Control|Tab/.test(code)));
});

test("what a program says of its keys comes before what their names say", () => {
  const bindings = { jump: ["Space"], e: ["KeyF"], fly: ["KeyE", "MouseRight"] };
  const { codes, buttons } = bindingsOf([{ ...edges("space", "jump", "e", "fly", "f"), bindings }]);
  const pressed = ["Space", "KeyF", "KeyE"].map((code) => codes.get(code));
  assert.deepEqual(pressed, ["play:jump", "play:e", "play:fly"]);
  assert.deepEqual([...buttons], [[2, "play:fly"]]);
});

test("two controls may have a key of the same name", () => {
  const { targets, keyButtons } = bindingsOf([edges("go"), { ...edges("go"), name: "other" }]);
  assert.deepEqual(keyButtons.map(({ meaning }) => targets.get(meaning)?.control), ["play", "other"]);
});

test("axes have no buttons, and are dragged as they say, or in their order", () => {
  const axes = axesOf([
    CSGO, sum("roll"), sum("mouse_y", -200, 200, "y"), sum("mouse_x", -1000, 1000, "x"),
  ]);
  assert.deepEqual(axes[0], { name: "roll", low: -1, high: 1, label: "Roll", drag: "" });
  assert.equal(draggedOf(axes).across?.name, "mouse_x");
  assert.equal(draggedOf(axes).down?.name, "mouse_y");
  const [pan, tilt] = axesOf([sum("pan"), sum("tilt")]);
  assert.deepEqual(draggedOf([pan, tilt]), { across: pan, down: tilt });
  assert.deepEqual(draggedOf([]), { across: undefined, down: undefined });
  assert.deepEqual(bindingsOf([sum("pan")]).keyButtons, []);
});

test("one axis that says how it is dragged leaves the others alone, and the page tells which way", () => {
  const [pan, tilt] = axesOf([sum("pan"), sum("tilt", -1, 1, "y")]);
  assert.deepEqual(draggedOf([pan, tilt]), { across: undefined, down: tilt });
  assert.equal(hintOf([pan, tilt]), "Drag the picture up or down for Tilt");
  assert.equal(hintOf([pan]), "Drag the picture sideways for Pan");
  assert.equal(hintOf([]), "");
});

test("names are made words", () => {
  const words = ["left_click", "swapHands", "hotbar.3", "r", "ESC"].map(wordsOf);
  assert.deepEqual(words, ["Left click", "Swap hands", "Hotbar 3", "R", "ESC"]);
});
