import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { featuresOf, showsNow, titleOf, wordingOf } from "../../../web_client/ui/features.js";
import { overlayOf } from "../../../web_client/ui/overlay.js";
import { INITIAL_VIEW, reduce } from "../../../web_client/state.js";

test("a session that is not there yet can do nothing", () => {
  assert.deepEqual(featuresOf(null), {
    takesPrompt: true, examplePrompts: [], exampleTurns: [], hasPictures: true, hasText: false,
    takesTurns: false, speaker: null, inputs: [], hasSound: false, sliders: [], textSwitches: [],
  });
});

test("parameters without a label are not for people, and what switches the text is shown next to it", () => {
  const parameters = [
    { name: "speak", label: "Speak", value: 1, stream: "words" },
    { name: "blur", label: "Blur", value: 1, stream: "video" },
    { name: "steps", label: "Steps", value: 3, stream: "" },
    { name: "fault", label: "", value: 0, stream: "words" },
  ];
  const streams = [{ name: "words", kind: "text", loop: "ar_decode" }];
  const features = featuresOf({ parameters, streams });
  assert.deepEqual(features.textSwitches.map(({ name, value }) => [name, value]), [["speak", 1]]);
  assert.deepEqual(features.sliders.map(({ name }) => name), ["blur", "steps"]);
  assert.equal(featuresOf({ parameters, streams: [] }).sliders.length, 3, "no text to stand next to");
});

test("a program of words alone has nothing to look at, and the page says what to do instead", () => {
  const session = { streams: [{ name: "text", kind: "text", loop: "ar_decode" }] };
  assert.equal(featuresOf(session).hasPictures, false);
  const view = { ...INITIAL_VIEW, link: "live", reason: "", notice: "", session };
  assert.equal(overlayOf(view, 0)?.title, "Ask it something");
});

test("examples are those that the model declares", () => {
  const session = { example_prompts: ["a bog", "a town"], example_turns: ["Where is the bog?"] };
  const features = featuresOf(session);
  assert.deepEqual(features.examplePrompts, ["a bog", "a town"]);
  const { example, questionExample } = wordingOf(features);
  assert.deepEqual([example, questionExample], ["a bog", "Where is the bog?"]);
  assert.equal(wordingOf(featuresOf({ model: "other" })).example, "");
});

test("where there is nothing to see, nothing is asked about it", () => {
  const words = featuresOf({ streams: [{ name: "text", kind: "text", loop: "ar_decode" }] });
  assert.doesNotMatch(Object.values(wordingOf(words)).join(" "), /world|see|water/);
  assert.match(wordingOf(featuresOf(null)).ask, /world/);
});

test("pictures are expected of a world that runs, and never where there are none", () => {
  const video = [{ name: "video", kind: "video", loop: "world_model" }];
  const text = [{ name: "text", kind: "text", loop: "ar_decode" }];
  assert.equal(showsNow({ session: { state: "active", streams: video } }), true);
  assert.equal(showsNow({ session: { state: "paused", streams: video } }), false);
  assert.equal(showsNow({ session: { state: "active", streams: text } }), false);
  assert.equal(showsNow({ session: null }), false);
});

test("programs have names for people", () => {
  assert.equal(titleOf("narrated_world"), "Narrated world");
});

test("the page knows every event that the server may send", () => {
  const schema = JSON.parse(readFileSync(new URL("../../../sessions/protocol/schema.json", import.meta.url), "utf-8"));
  const types = Object.keys(schema.event.discriminator.mapping);
  assert.ok(types.includes("media.chunk"));
  for (const type of types) {
    try {
      reduce(INITIAL_VIEW, { type });
    } catch (error) {
      assert.doesNotMatch(String(error), /unknown message type/);
    }
  }
});
