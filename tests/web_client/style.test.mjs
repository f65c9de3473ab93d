import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (/** @type {string} */ name) => readFileSync(new URL(`../../${name}`, import.meta.url), "utf-8");

/** Every page that shows pictures of a world. */
const PAGES = ["web_client/style.css", "web_client/index.html", "examples/livekit_world/index.html"];

const withoutComments = (/** @type {string} */ text) => text.replace(/\/\*[^]*?\*\/|<!--[^]*?-->/g, "");

test("nothing on the page is drawn again and again, or blurred, for decoration", () => {
  for (const name of PAGES) {
    const text = withoutComments(read(name));
    for (const costly of [/filter\s*:/, /\binfinite\b/, /@keyframes/, /\banimation\b/, /mix-blend-mode/, /will-change/, /<animate/]) {
      assert.doesNotMatch(text, costly, name);
    }
  }
});

test("no shadow is blurred: a ring is all that a shadow may be", () => {
  for (const name of PAGES) {
    const text = withoutComments(read(name));
    for (const [, shadow] of text.matchAll(/(?:box|text)-shadow\s*:\s*([^;}]+)/g)) {
      assert.match(shadow, /^0 0 0 \d+px [^,]+$/, `${name}: ${shadow}`);
    }
  }
});

test("a transition ends before a person notices, and none lies near the picture", () => {
  const text = withoutComments(read("web_client/style.css"));
  for (const [, rule, values] of text.matchAll(/([^{}]+)\{[^{}]*transition\s*:\s*([^;}]+)/g)) {
    assert.doesNotMatch(rule, /\.(stage|glow|frame|picture|source|overlay)\b/, rule);
    for (const [, ms] of values.matchAll(/(\d+)ms/g)) assert.ok(Number(ms) <= 200, rule);
    assert.doesNotMatch(values, /[\d.]+s\b(?<!ms)/, rule);
  }
});
