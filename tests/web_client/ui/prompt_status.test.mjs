import assert from "node:assert/strict";
import { test } from "node:test";

import { newPromptStatus, promptStatusText } from "../../../web_client/ui/prompt_status.js";

const told = (/** @type {string} */ text, /** @type {object} */ more = {}) =>
  promptStatusText({ ...newPromptStatus("p", text), outcome: "applied", ...more });

test("a world does not follow words of which it knows none", () => {
  const says = "I do not know: zebra, quux. The world stays as it is.";
  for (const text of ["zebra quux", "a Zebra in the quux!"]) {
    assert.equal(told(text, { unknownWords: ["zebra", "quux"] }), says);
  }
});

test("a world follows the words that it knows", () => {
  assert.equal(told("a red zebra", { unknownWords: ["zebra"] }),
    "The world follows: a red zebra. I do not know: zebra.");
  assert.equal(told("a bog"), "The world follows: a bog.");
  assert.equal(told(""), "The world follows: no prompt.");
  assert.match(told("a bog", { truncatedAt: 3 }), /first 3 words/);
});

test("a long prompt is clipped where it is read aloud", () => {
  const promptStatus = { ...newPromptStatus("p", "bog ".repeat(900)), unknownWords: ["bog"] };
  assert.ok(promptStatusText(promptStatus, 100).length < 160);
  assert.ok(promptStatusText(promptStatus).length > 3000);
});
