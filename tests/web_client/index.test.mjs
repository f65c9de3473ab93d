import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { test } from "node:test";

const FOLDER = new URL("../../web_client/", import.meta.url);
const read = (/** @type {string} */ name) => readFileSync(new URL(name, FOLDER), "utf-8");
const INDEX = read("index.html");

/** What `main.js` imports, and what that imports, and so on. */
function imported() {
  const found = new Set(["main.js"]);
  for (const name of found) {
    for (const [, other] of read(name).matchAll(/from "(\.{1,2}\/[\w/.]+\.js)"/g)) {
      found.add(posix.join(posix.dirname(name), other));
    }
  }
  return [...found].filter((name) => name !== "main.js").sort();
}

test("every module is asked for at once, and none that is not there", () => {
  const preloaded = [...INDEX.matchAll(/modulepreload" href="static\/([\w/]+\.js)"/g)];
  assert.deepEqual(preloaded.map(([, name]) => name), imported());
});

test("no module lies there unused", () => {
  const all = readdirSync(FOLDER, { recursive: true }).map(String)
    .filter((name) => name.endsWith(".js")).sort();
  assert.deepEqual(all, [...imported(), "main.js", "media/microphone_worklet.js"].sort());
});

test("whatever the scripts reach for in the page is there", () => {
  const parts = new Set([...INDEX.matchAll(/data-part="([\w-]+)"/g)].map(([, name]) => name));
  for (const name of [...imported(), "main.js"]) {
    for (const [, part] of read(name).matchAll(/(?:part\(|#on\(|#text\(|#parts\[)"([\w-]+)"/g)) {
      assert.ok(parts.has(part), `${name}: ${part}`);
    }
    for (const [, part] of read(name).matchAll(/#parts\.(\w+)/g)) {
      assert.ok(parts.has(part), `${name}: ${part}`);
    }
  }
});
