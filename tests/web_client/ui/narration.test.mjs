import assert from "node:assert/strict";
import { test } from "node:test";

import { asked, brokenOff, forgetting, heard, isSpeaking, NOTHING_SAID, refused, rejoined } from "../../../web_client/ui/narration.js";

const said = (/** @type {number} */ utterance, /** @type {string} */ text, more = {}) => ({
  stream: "narration", text, utterance, final: false, answers: null, ...more,
});

const linesOf = (/** @type {any[]} */ ...deltas) => deltas.reduce(heard, NOTHING_SAID);

test("an utterance grows until its last word", () => {
  const growing = linesOf(said(1, "You stand "), said(1, "in sand. "));
  assert.equal(growing.length, 1);
  assert.equal(growing[0].text, "You stand in sand. ");
  assert.ok(isSpeaking(growing));
  const done = heard(growing, said(1, "", { final: true }));
  assert.equal(done[0].state, "done");
  assert.ok(!isSpeaking(done));
});

test("one that is not ended before the next begins was interrupted", () => {
  const lines = linesOf(said(1, "You walk "), said(2, "Night falls. ", { final: true }));
  assert.deepEqual(lines.map(({ state }) => state), ["broken", "done"]);
});

test("an interrupt breaks off what is being said and what was asked", () => {
  const lines = brokenOff(asked(linesOf(said(1, "You walk ")), "q1", "where is water?"));
  assert.deepEqual(lines.map(({ state }) => state), ["broken", "broken"]);
  assert.equal(brokenOff(lines), lines, "and nothing else");
});

test("what ends before it says anything leaves no line", () => {
  assert.deepEqual(linesOf(said(1, ""), said(1, "", { final: true, cut: true })), []);
  assert.deepEqual(brokenOff(linesOf(said(1, ""))), []);
});

test("an answer stands under its question, whatever is said in between", () => {
  const lines = [
    said(4, "You walk. ", { final: true }),
    said(5, "To the ", { answers: "q1" }),
    said(5, "west. ", { answers: "q1", final: true }),
  ].reduce(heard, asked(NOTHING_SAID, "q1", "where is water?"));
  assert.deepEqual(lines.map(({ question, text }) => [question, text]), [
    ["where is water?", "To the west. "],
    [null, "You walk. "],
  ]);
});

test("an answer to what nobody here asked is a line of its own", () => {
  assert.equal(linesOf(said(1, "To the west. ", { answers: "elsewhere" }))[0].question, null);
});

test("a question that is refused says so", () => {
  const lines = refused(asked(NOTHING_SAID, "q1", "?"), "q1");
  assert.equal(lines[0].state, "refused");
  assert.equal(refused(lines, "q1"), lines);
  assert.equal(refused(lines, null), lines);
});

test("only the newest lines are kept", () => {
  const deltas = Array.from({ length: 100 }, (_, index) => said(index, "x ", { final: true }));
  const lines = linesOf(...deltas);
  assert.equal(lines.length, 40);
  assert.equal(lines.at(-1)?.key, "narration/99");
});

test("two streams of text do not break each other off", () => {
  const lines = linesOf(said(1, "You walk "), said(2, "psst ", { stream: "whisper" }), said(1, "on. "));
  assert.deepEqual(lines.map(({ text, state }) => [text, state]), [
    ["You walk on. ", "growing"],
    ["psst ", "growing"],
  ]);
});

test("after a break the newest utterance is told anew, and stands there once", () => {
  const before = rejoined(linesOf(said(1, "You stand "), said(1, "in ")));
  const anew = heard(before, said(1, "You stand in sand "));
  assert.deepEqual(anew.map(({ text }) => text), ["You stand in sand "]);
  assert.equal(heard(anew, said(1, "here. "))[0].text, "You stand in sand here. ");
  assert.equal(heard(before, said(1, "", { cut: true }))[0].text, "You stand in ");
});

test("a question that others gave way for says how many, and no other does", () => {
  const lines = asked(asked(NOTHING_SAID, "q1", "?"), "q2", "??");
  const told = forgetting(lines, "q2", 3);
  assert.deepEqual(told.map(({ forgotten }) => forgotten), [undefined, 3]);
  assert.equal(forgetting(lines, "q2", 0), lines);
  assert.equal(heard(told, said(1, "Sand. ", { answers: "q2" }))[1].forgotten, 3);
});
