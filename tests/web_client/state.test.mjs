import assert from "node:assert/strict";
import { test } from "node:test";

import { medianMs } from "../../web_client/media/latency.js";
import { metricsOf } from "../../web_client/ui/stats_panel.js";
import { overlayOf } from "../../web_client/ui/overlay.js";
import { framesPerSecond } from "../../web_client/media/playback_stats.js";
import { differInNumbersOnly, INITIAL_VIEW, isRecording, reduce } from "../../web_client/state.js";
import { featuresOf } from "../../web_client/ui/features.js";
import { statusOf } from "../../web_client/ui/status.js";

const SESSION = { state: "active", model: "pocket", program: "world", prompt: "a bog", controls: [] };
const ATTACHED = { type: "session.attached", role: "driver", view: SESSION, limits: {} };
const FRAME_US = 100_000;

/** @typedef {import("../../web_client/state.js").View} View */

function after(/** @type {{type: string}[]} */ ...messages) {
  return messages.reduce(reduce, INITIAL_VIEW);
}

const chunk = (/** @type {number} */ index, dropped = 0) => ({
  type: "media.chunk",
  pts_us: index * FRAME_US,
  duration_us: FRAME_US,
  dropped,
});

const shown = (/** @type {number} */ index, /** @type {number} */ atMs) => ({
  type: "page.shown",
  ptsUs: index * FRAME_US,
  durationUs: FRAME_US,
  atMs,
});

const pressed = (/** @type {string} */ id, /** @type {number} */ atMs) => ({
  type: "page.pressed",
  id,
  atMs,
});

const applied = (/** @type {string} */ control, /** @type {number} */ index, more = {}) => ({
  type: "control.applied",
  control,
  pts_us: index * FRAME_US,
  ...more,
});

const prompted = (/** @type {string} */ id, /** @type {string} */ text) => ({
  type: "page.prompted",
  id,
  text,
});

test("an unknown message is an error, also when an object would know the name", () => {
  for (const type of ["media.smell", "", "constructor", "__proto__", "toString"]) {
    assert.throws(() => reduce(INITIAL_VIEW, { type }), /unknown message type/);
  }
});

test("the view before is never edited", () => {
  const freeze = (/** @type {any} */ value) => {
    if (value !== null && typeof value === "object") Object.values(Object.freeze(value)).map(freeze);
    return value;
  };
  const messages = [
    ATTACHED, prompted("p", "x"), pressed("k", 1), applied("k", 0), applied("p", 0), chunk(0, 2),
    shown(0, 5), { type: "session.interrupted", seen_us: 0, next_us: 1 },
    { type: "error", code: "c", message: "m", command: "p" },
    { type: "page.lost", reason: "r", retryAtMs: 9 }, { type: "page.tick", nowMs: 1e6 },
  ];
  messages.reduce((view, message) => freeze(reduce(view, freeze(message))), freeze(INITIAL_VIEW));
});

test("key to picture is from the press to the stats of the picture that the receipt names", () => {
  const view = after(ATTACHED, pressed("k", 1000), applied("k", 3), shown(2, 1100), shown(3, 1180));
  assert.equal(medianMs(view.latency), 180);
  assert.deepEqual(view.latency.stamps, []);
});

test("without its receipt no picture counts for a press", () => {
  assert.equal(medianMs(after(ATTACHED, pressed("k", 1000), shown(3, 1100)).latency), null);
});

test("when its picture was skipped the next one counts", () => {
  const view = after(ATTACHED, pressed("k", 1000), applied("k", 3), shown(5, 1250));
  assert.equal(medianMs(view.latency), 250);
});

test("the median is of the newest presses", () => {
  const messages = [100, 900, 120, 110].flatMap((ms, index) => [
    pressed(`k${index}`, 0), applied(`k${index}`, index), shown(index, ms),
  ]);
  assert.equal(medianMs(after(ATTACHED, ...messages).latency), 115);
});

test("a press that was refused, replaced or cut off is not measured", () => {
  for (const end of [
    { type: "error", code: "c", message: "m", command: "k" },
    { type: "control.superseded", control: "k", by: null },
    { type: "page.lost", reason: "gone", retryAtMs: 0 },
  ]) {
    const view = after(ATTACHED, pressed("k", 0), end, applied("k", 1), shown(1, 50));
    assert.equal(medianMs(view.latency), null, end.type);
  }
});

test("a picture dropped unseen by an interrupt counts for nothing; its second receipt does", () => {
  const cut = { type: "session.interrupted", seen_us: 2 * FRAME_US, next_us: 6 * FRAME_US };
  const view = after(ATTACHED, pressed("k", 0), applied("k", 4), cut, shown(6, 300));
  assert.equal(medianMs(view.latency), null);
  assert.equal(medianMs([applied("k", 7), shown(7, 400)].reduce(reduce, view).latency), 400);
});

test("a press that waits across a break is not measured", () => {
  for (const breaks of [
    [{ type: "session.recovering", reason: "worker_lost", chunk: 3 }],
    [{ type: "page.connecting" }, ATTACHED],
    [ATTACHED],
    [{ type: "session.interrupted", reason: "reset", seen_us: 0, next_us: FRAME_US }],
  ]) {
    const view = after(ATTACHED, pressed("k", 0), ...breaks, applied("k", 4), shown(4, 9000));
    assert.equal(medianMs(view.latency), null, breaks[0].type);
  }
});

test("presses without receipts are kept in bounds", () => {
  const many = Array.from({ length: 500 }, (_, index) => pressed(`k${index}`, index));
  assert.equal(after(ATTACHED, ...many).latency.stamps.length, 64);
});

test("frames a second are those shown of late", () => {
  const view = after(ATTACHED, ...Array.from({ length: 40 }, (_, i) => shown(i, 5000 + i * 100)));
  assert.ok(Math.abs((framesPerSecond(view.screen) ?? 0) - 10) < 0.01);
  assert.ok(view.screen.shownAtMs.length <= 21);
  const later = reduce(view, { type: "page.tick", nowMs: 60_000 });
  assert.ok((framesPerSecond(later.screen, 60_000) ?? 1) < 0.1, "long ago");
});

test("lead is how far ahead the newest picture was", () => {
  const view = after(ATTACHED, { type: "media.init" }, chunk(0), shown(0, 10), chunk(1), chunk(2));
  assert.equal(metricsOf(view).lead.value, 200);
});

test("packets of sound are no pictures", () => {
  const sound = { type: "media.init", kind: "audio", stream: "voice" };
  const view = after(ATTACHED, sound, { ...chunk(3, 5), stream: "voice" });
  assert.equal(view.media, null);
  assert.deepEqual(view.screen, INITIAL_VIEW.screen);
});

test("pictures dropped there and here add up", () => {
  const view = after(ATTACHED, chunk(0, 2), { type: "page.skipped", count: 3 }, chunk(4, 1));
  assert.equal(metricsOf(view).dropped.value, 6);
});

test("a prompt's receipt says which words nobody knows", () => {
  const view = after(ATTACHED, prompted("p", "a zebra"), applied("p", 1, { unknown_words: ["zebra"] }));
  assert.equal(view.promptStatus?.outcome, "applied");
  assert.match(view.announcement, /I do not know: zebra/);
});

test("what became of a prompt is told for the newest one alone", () => {
  const view = after(ATTACHED, prompted("p", "a bog"), prompted("q", "a town"), applied("p", 1));
  assert.equal(view.promptStatus?.outcome, "asked");
  const replaced = reduce(view, { type: "control.superseded", control: "q", by: "r" });
  assert.equal(replaced.promptStatus?.outcome, "replaced");
});

test("an error that answers a prompt is shown and refuses it", () => {
  const error = { type: "error", code: "too_long", message: "too long", command: "p" };
  const view = after(ATTACHED, prompted("p", "a bog"), error);
  assert.equal(view.promptStatus?.outcome, "refused");
  assert.deepEqual(view.error, { code: "too_long", message: "too long" });
  assert.equal(reduce(view, { type: "page.error_read" }).error, null);
});

test("a refused prompt is what is said, not the one before, and not all of it", () => {
  const long = "bog ".repeat(900);
  const before = [ATTACHED, prompted("p", "a town"), applied("p", 1)];
  const error = { type: "error", code: "too_long", message: "too long", command: "q" };
  const view = after(...before, prompted("q", long), error);
  assert.match(view.announcement, /^Refused: bog/);
  assert.ok(view.announcement.length < 150);
  const other = reduce(after(...before), { ...error, command: "x" });
  assert.match(other.announcement, /town/, "an error of something else says nothing here");
});

test("a server that takes prompts of some length has its field keep to it", () => {
  assert.equal(after({ ...ATTACHED, limits: { prompt_chars: 2000 } }).promptChars, 2000);
});

test("a recovered world is said to be back, once", () => {
  const view = after(ATTACHED, { type: "session.recovering" }, chunk(0));
  assert.equal(view.announcement, "The world is back.");
  assert.equal(reduce({ ...view, announcement: "x" }, chunk(1)).announcement, "x");
});

test("a lost model stays lost over another way to the server, until a picture comes", () => {
  const lost = { type: "page.lost", reason: "away", retryAtMs: 0 };
  const recovering = { type: "session.recovering" };
  for (const way of [[{ type: "page.connecting" }], [lost, { type: "page.connecting" }]]) {
    const view = after(ATTACHED, chunk(0), shown(0, 1), recovering, ...way, ATTACHED);
    assert.equal(overlayOf(view, 0)?.title, "Bringing the world back");
    assert.match(statusOf(view, 0).text, /back/);
    assert.equal(statusOf(reduce(view, chunk(1)), 0).text, "Live");
  }
  const told = after(ATTACHED, chunk(0), shown(0, 1), lost, ATTACHED, recovering);
  assert.equal(overlayOf(told, 0)?.title, "Bringing the world back", "also who comes later is told");
  assert.equal(overlayOf(reduce(told, chunk(1)), 0), null);
});

test("a picture from before the loss does not end a recovery", () => {
  const recovering = { type: "session.recovering", chunk: 7 };
  const lost = after(ATTACHED, recovering, { ...chunk(7), chunk: 7 });
  assert.match(statusOf(lost, 0).text, /back/, "it was still on its way");
  const again = [{ type: "page.connecting" }, ATTACHED, recovering].reduce(reduce, lost);
  const still = reduce(again, { ...chunk(7), chunk: 7 });
  assert.equal(overlayOf(still, 0)?.title, "Bringing the world back", "newcomers are shown the last one");
  const restored = { ...chunk(8), chunk: 5, discontinuity: true };
  for (const picture of [restored, { ...chunk(8), chunk: 8 }]) {
    assert.equal(reduce(still, picture).recovering, false);
    assert.equal(reduce(still, picture).announcement, "The world is back.");
  }
  const later = [{ type: "page.connecting" }, ATTACHED].reduce(reduce, still);
  assert.equal(reduce(later, { ...chunk(9), chunk: 6 }).recovering, false, "it went on meanwhile");
});

test("a paused world shows no picture that would end a recovery: coming back does", () => {
  const paused = { ...ATTACHED, view: { ...SESSION, state: "paused" } };
  const view = after(ATTACHED, { type: "session.recovering" }, { type: "page.connecting" }, paused);
  assert.equal(view.recovering, false);
});

test("a program without pictures is back with its first word", () => {
  const delta = { type: "text.delta", text: "So", stream: "words", turn: null };
  const recovering = { type: "session.recovering" };
  assert.equal(after(ATTACHED, recovering, delta).recovering, false);
  const media = { type: "media.init", stream: "main", codec: "jpeg", width: 1, height: 1 };
  assert.equal(after(ATTACHED, media, recovering, delta).recovering, true);
});

test("what is kept can be fetched with its own ticket, also when its session is over", () => {
  const ticket = { id: "s1", token: "t1" };
  const made = { kind: "recording", name: "r1", duration_us: 4e6, size_bytes: 9 };
  const completed = { type: "artifact.completed", ...made, ticket };
  const renewed = { type: "page.new_session", reason: "A new world." };
  assert.deepEqual(after(ATTACHED, completed, renewed, ATTACHED).kept?.ticket, ticket);
  const recording = { ...ATTACHED, view: { ...SESSION, recording: "r2" } };
  const late = after(ATTACHED, renewed, recording, { type: "page.kept", ...made, ticket });
  assert.deepEqual([late.kept?.name, late.kept?.ticket], ["r1", ticket]);
  assert.equal(late.recordedUs, 0, "the new world is still being recorded");
});

test("unknown words of the opening prompt are told like those of any other", () => {
  const unknown = applied("opening", 0, { unknown_words: ["bog"] });
  const view = after(ATTACHED, unknown);
  assert.deepEqual([view.promptStatus?.text, view.promptStatus?.unknownWords], ["a bog", ["bog"]]);
  assert.match(view.announcement, /I do not know: bog/);
  assert.equal(after(ATTACHED, applied("opening", 0)).promptStatus, null, "nothing to be told");
  assert.equal(after(ATTACHED, prompted("p", "a town"), unknown).promptStatus?.text, "a town");
});

test("a server too slow for its model is said to be, while the world is live", () => {
  const status = (/** @type {any} */ speed, state = "active") =>
    statusOf(after({ ...ATTACHED, view: { ...SESSION, state, speed } }), 0).text;
  const slow = { makes_hz: 7.9, declared_hz: 12, keeps_rate: false };
  assert.equal(status(slow), "Live, makes 7 of 12 pictures a second here");
  assert.equal(status({ ...slow, makes_hz: 0.46 }), "Live, makes 0.5 of 12 pictures a second here");
  assert.equal(status({ makes_hz: 18, declared_hz: 12, keeps_rate: true }), "Live");
  assert.equal(status(null), "Live", "nothing was measured");
  assert.equal(status(undefined), "Live", "an older server");
  assert.equal(status(slow, "paused"), "Paused");
});

const LOSS = { type: "page.new_session", reason: "The old world is lost.", isLoss: true };

test("a lost world is said to be lost, in the status, aloud, and on the page for a while", () => {
  const created = { ...ATTACHED, view: { ...SESSION, state: "created" } };
  const updated = { type: "session.updated", view: SESSION };
  const beginning = after(ATTACHED, LOSS, { type: "page.connecting" });
  assert.match(statusOf(beginning, 0).text, /Old world lost/);
  assert.equal(overlayOf(beginning, 0)?.title, "Starting a new world");
  const begun = [created, updated].reduce(reduce, beginning);
  assert.match(begun.announcement, /The old world is lost/, "and is not cut off");
  assert.equal(statusOf(begun, 0).text, "Live, in a new world");
  const late = reduce(begun, { type: "page.tick", nowMs: 60_000 });
  assert.equal(late.notice, "The old world is lost.", "nobody has seen the new world yet");
  const seen = reduce(late, shown(0, 61_000));
  assert.notEqual(reduce(seen, { type: "page.tick", nowMs: 66_000 }).notice, "");
  const later = reduce(seen, { type: "page.tick", nowMs: 71_000 });
  assert.equal(later.notice, "");
  assert.equal(statusOf(later, 0).text, "Live");
  assert.equal(reduce(later, shown(1, 71_100)).noticeUntilMs, null);
});

test("a new world that was wished for is no loss", () => {
  assert.equal(after(ATTACHED, { ...LOSS, isLoss: false }).notice, "");
});

test("who waits is told why, and where", () => {
  const overlay = overlayOf(after(ATTACHED, { type: "request.queued", position: 2 }), 0);
  assert.match(overlay?.detail ?? "", /Every place is taken.*number 2/);
});

test("an error that answers nothing leaves the promptStatus alone", () => {
  const view = after(ATTACHED, { type: "error", code: "c", message: "m" });
  assert.equal(view.promptStatus, null);
});

test("the status follows the link and the session", () => {
  const now = 1000;
  const status = (/** @type {{type: string}[]} */ ...messages) => statusOf(after(...messages), now);
  const lost = { type: "page.lost", reason: "away", retryAtMs: 3200 };
  assert.deepEqual(status(), { tone: "wait", text: "Connecting" });
  assert.deepEqual(status(ATTACHED), { tone: "live", text: "Live" });
  const paused = { type: "session.updated", view: { ...SESSION, state: "paused" } };
  assert.equal(status(ATTACHED, paused).tone, "paused");
  assert.deepEqual(status(ATTACHED, lost), { tone: "away", text: "Server not reached, trying again in 3 s" });
  assert.deepEqual(status(ATTACHED, lost, { type: "page.connecting" }), {
    tone: "away",
    text: "Reconnecting",
  });
  assert.equal(status({ ...lost, isBusy: true }).tone, "wait");
  assert.equal(status(ATTACHED, lost, { type: "page.connecting" }, ATTACHED).text, "Live");
  assert.equal(status(ATTACHED, { type: "page.over", reason: "Ended.", nextAction: "renew" }).text, "Ended.");
  assert.match(status(ATTACHED, { type: "request.queued", position: 2 }).text, /number 2/);
  assert.match(status(ATTACHED, { type: "session.recovering" }).text, /back/);
  assert.equal(status(ATTACHED, { type: "session.recovering" }, chunk(0)).text, "Live");
});

test("a lost server is announced once, not at every attempt", () => {
  const lost = { type: "page.lost", reason: "away", retryAtMs: 0 };
  const once = after(ATTACHED, lost);
  assert.equal(once.announcement, "away");
  const quiet = [{ type: "page.connecting" }, lost].reduce(reduce, { ...once, announcement: "x" });
  assert.equal(quiet.announcement, "x");
});

test("a new session forgets the numbers of the old one", () => {
  const view = after(ATTACHED, chunk(0, 5), shown(0, 1), { type: "page.new_session", reason: "gone" });
  assert.equal(view.screen.dropped, 0);
  assert.equal(view.reason, "gone");
});

test("a picture after the first changes numbers only, which wait for the next tick", () => {
  const differs = (/** @type {View} */ before, /** @type {{type: string}} */ message) =>
    !differInNumbersOnly(before, reduce(before, message));
  const begun = after(ATTACHED, chunk(0));
  assert.equal(differs(begun, shown(0, 1)), true, "the first picture lifts the overlay");
  const seen = after(ATTACHED, chunk(0), shown(0, 1));
  for (const message of [chunk(1), shown(1, 100), { type: "page.skipped", count: 1 }, pressed("k", 1)]) {
    assert.equal(differs(seen, message), false, message.type);
  }
  const paused = { type: "session.updated", view: { ...SESSION, state: "paused" } };
  const recovering = reduce(seen, { type: "session.recovering" });
  for (const [view, message] of /** @type {const} */ ([[seen, paused], [recovering, chunk(1)]])) {
    assert.equal(differs(view, message), true, message.type);
  }
});

test("the receipt of a turn says on the page how many messages gave way for it", () => {
  const asked = { type: "page.asked", id: "q", text: "?" };
  const receipt = { type: "control.applied", control: "q", pts_us: 0, dropped_messages: 2 };
  const view = after(ATTACHED, asked, receipt);
  assert.equal(view.lines[0].forgotten, 2);
});

test("unknown words of a question are noted with its answer", () => {
  const asked = { type: "page.asked", id: "q", text: "Where is the blargzebra?" };
  const delta = { type: "text.delta", stream: "words", utterance: 1, text: "Here.", answers: "q" };
  const view = after(ATTACHED, asked, applied("q", 0, { unknown_words: ["blargzebra"] }), delta);
  assert.deepEqual(view.lines.map(({ text, unknownWords }) => [text, unknownWords]), [["Here.", ["blargzebra"]]]);
});

test("a slow machine is shown a number below one, and it falls while nothing comes", () => {
  const slow = after(ATTACHED, chunk(0), shown(0, 1000), chunk(1), shown(1, 5000));
  const ticked = reduce(slow, { type: "page.tick", nowMs: 8000 });
  assert.equal(metricsOf(ticked, 8000).fps.value, 0.3, "four seconds between pictures");
  assert.equal(framesPerSecond(ticked.screen, 11_000), 0.1);
});

const STEPS = { name: "steps", value: 3, default: 3, low: 1, high: 8, integer: true, label: "Steps" };
const TURNED = { ...SESSION, parameters: [STEPS] };
const DRIVEN = { ...ATTACHED, view: TURNED };
const updated = (/** @type {number} */ value, more = {}) => {
  return { type: "session.updated", view: { ...TURNED, ...more, parameters: [{ ...STEPS, value }] } };
};
const choice = (/** @type {string} */ id, /** @type {number} */ value, name = "parameters.steps") => {
  return { type: "page.chosen", id, name, value };
};
const accepted = (/** @type {string} */ command) => ({ type: "request.accepted", command });
const stepsOf = (/** @type {View} */ view) => featuresOf(view.session, view.chosen).sliders[0].value;

test("what a person chose is shown until the server answers, whatever comes meanwhile", () => {
  const delta = { type: "text.delta", text: "So", stream: "words", utterance: 1 };
  const meanwhile = [delta, updated(3, { state: "paused" }), chunk(1), { type: "page.tick", nowMs: 9 }];
  let view = after(DRIVEN, choice("c", 5));
  for (const message of [...meanwhile, accepted("c"), delta, applied("c", 1), updated(5)]) {
    view = reduce(view, message);
    assert.equal(stepsOf(view), 5, `the choice is gone after ${message.type}`);
  }
  assert.equal(stepsOf(reduce(view, updated(2))), 2, "another driver turned it since");
});

test("a refused choice, and one that the link took with it, falls back to the server's value", () => {
  for (const end of [
    { type: "error", code: "out_of_range", message: "m", command: "c" },
    { type: "page.lost", reason: "gone", retryAtMs: 0 },
    { type: "page.connecting" },
    { type: "page.waiting", reason: "loading", isLoading: true },
    { type: "page.over", reason: "ended" },
    DRIVEN,
  ]) {
    const view = after(DRIVEN, choice("c", 5), end);
    assert.equal(stepsOf(view), 3, end.type);
    assert.deepEqual(view.chosen, {}, end.type);
  }
});

test("the newest choice is shown, not the answers to those before", () => {
  const twice = after(DRIVEN, choice("c", 5), choice("d", 6));
  for (const answer of [accepted("c"), updated(5), { type: "error", code: "c", message: "m", command: "c" }]) {
    assert.equal(stepsOf(reduce(twice, answer)), 6, answer.type);
  }
  const both = [accepted("c"), updated(5), accepted("d"), applied("c", 1), updated(6)];
  assert.equal(stepsOf(both.reduce(reduce, twice)), 6);
});

test("an answer to something else changes no choice, and draws nothing again", () => {
  const view = after(DRIVEN, choice("c", 5));
  assert.equal(reduce(view, accepted("other")), view);
});

test("a recording that was asked for is shown at once, and one that was stopped is not shown again", () => {
  const name = (/** @type {string} */ each, more = {}) => ({ kind: "recording", name: each, ...more });
  const created = { type: "artifact.created", ...name("r1"), chunk: 3 };
  const asked = after(ATTACHED, choice("a", 1, "recording"));
  assert.equal(isRecording(asked), true);
  const refused = { type: "error", code: "disk_full", message: "m", command: "a" };
  assert.equal(isRecording(reduce(asked, refused)), false);
  const running = [created, accepted("a")].reduce(reduce, asked);
  assert.equal(isRecording(running), true);
  const stopping = reduce(running, choice("b", 0, "recording"));
  const progress = { type: "artifact.updated", ...name("r1"), duration_us: 9 };
  for (const view of [stopping, reduce(stopping, progress), reduce(stopping, accepted("b"))]) {
    assert.equal(isRecording(view), false);
  }
  const stopped = reduce(stopping, accepted("b"));
  assert.equal(isRecording(reduce(stopped, progress)), false, "its last part is still being written");
  const next = [{ ...created, name: "r2" }].reduce(reduce, stopped);
  const completed = { type: "artifact.completed", ...name("r1", { duration_us: 9, size_bytes: 9 }) };
  assert.equal(isRecording(reduce(next, completed)), true, "the next one runs already");
});

const COUNTERS = { roundTripMs: 40, jitterMs: 2.4, bytes: 0, packets: 0, lost: 0, bufferedS: null, buffered: 0 };
const counted = (/** @type {number} */ atMs, more = {}) => {
  return { type: "page.measured", counters: { ...COUNTERS, ...more }, atMs, waitingMs: 12.3 };
};

test("the panel shows what the line does, and nothing of a line that is not there", () => {
  const view = after(ATTACHED, shown(0, 1), counted(1000), counted(2000, { bytes: 25_000, packets: 98, lost: 2 }));
  const shownOf = (/** @type {View} */ each) =>
    ["round-trip", "jitter", "bitrate", "loss", "waiting"].map((name) => metricsOf(each)[name].value);
  assert.deepEqual(shownOf(view), [40, 2, 200, 2, 12]);
  assert.deepEqual(metricsOf(view).bitrate.unit, "kbit/s");
  const fast = reduce(view, counted(3000, { bytes: 400_000 }));
  assert.deepEqual(metricsOf(fast).bitrate, { value: 3, unit: "Mbit/s" });
  const lost = reduce(view, { type: "page.lost", reason: "gone", retryAtMs: 0 });
  assert.deepEqual(shownOf(lost), [null, null, null, null, null]);
  assert.equal(lost.line.samples.length, 2, "the graph keeps its minute");
  assert.equal(differInNumbersOnly(view, reduce(view, counted(3000))), true, "it can wait for the next tick");
});

test("a key that acts at once breaks no words off and leaves other presses to be measured", () => {
  const delta = { type: "text.delta", stream: "words", utterance: 1, text: "So " };
  const cut = { type: "session.interrupted", reason: "act", seen_us: FRAME_US, next_us: 6 * FRAME_US, loops: ["a", "b"] };
  const view = after(ATTACHED, delta, pressed("k", 0), applied("k", 3), cut);
  assert.equal(view.lines[0].state, "growing");
  assert.equal(medianMs(reduce(view, shown(3, 250)).latency), 250);
  const broken = reduce(view, { ...cut, reason: "interrupt" });
  assert.equal(broken.lines[0].state, "broken");
});

test("over a socket the server tells the round trip, and over both how much is allowed and waits there", () => {
  const served = {
    lead: { allowed_ms: 250, unseen_ms: 120 },
    attachments: [{ role: "viewer", round_trip_ms: 1, waiting: 9 }, { role: "driver", round_trip_ms: 77, waiting: 2 }],
  };
  const over = (/** @type {string} */ transport) =>
    after(ATTACHED, { type: "page.transport", transport }, { ...counted(1000), served });
  const shownOf = (/** @type {View} */ view) =>
    ["round-trip", "allowed", "unseen", "queued"].map((name) => metricsOf(view)[name].value);
  assert.deepEqual(shownOf(over("websocket")), [77, 250, 120, 2]);
  assert.deepEqual(shownOf(over("webrtc")), [40, 250, 120, 2]);
  const silent = reduce(over("websocket"), { ...counted(2000), served: null });
  assert.deepEqual(shownOf(silent), [40, null, null, null]);
  const least = { ...served, lead: { allowed_ms: 0, unseen_ms: 0 } };
  assert.equal(metricsOf(reduce(silent, { ...counted(3000), served: least })).allowed.value, null);
});
