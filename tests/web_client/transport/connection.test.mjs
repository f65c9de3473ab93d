import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";

import { Connection } from "../../../web_client/transport/connection.js";
import { Signalling } from "../../../web_client/transport/signalling.js";
import { PageStorage } from "../../../web_client/transport/storage.js";
import { Tabs } from "../../../web_client/transport/tabs.js";
import { StoredSession } from "../../../web_client/transport/stored_session.js";

/** @type {string[]} what was asked of the server, in order */
const asked = [];
/** @type {Record<string, object>} */
let answers = {};
const OPEN = { state: "ready", open: true, position: 0, refusal: null, models: [], session: { live: true } };
/** @type {object[]} what the server says of itself, in order; that it is open, once it has said all */
const status = [];
let wakeAsked = () => {};
const server = createServer((incoming, response) => {
  const line = `${incoming.method} ${incoming.url}`;
  asked.push(line);
  const isStatus = incoming.url?.startsWith("/v1/status") ?? false;
  const answer = isStatus ? (status.shift() ?? OPEN) : answers[line];
  response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(answer ?? { error: { code: "none", message: "no such thing" } }));
  wakeAsked();
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
after(() => server.close());
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
const fetchAny = globalThis.fetch;
globalThis.fetch = (path, options) => fetchAny(`http://127.0.0.1:${port}/${path}`, options);

/** @param {string} line */
async function untilAsked(line) {
  while (!asked.includes(line)) await new Promise((resolve) => (wakeAsked = () => resolve(undefined)));
}

/** A storage of this test's own. */
function storage() {
  const kept = new Map();
  return /** @type {Storage} */ (/** @type {unknown} */ ({
    getItem: (/** @type {string} */ key) => kept.get(key) ?? null,
    setItem: (/** @type {string} */ key, /** @type {string} */ value) => kept.set(key, value),
    removeItem: (/** @type {string} */ key) => kept.delete(key),
  }));
}

/** A page that is attached; `dialed` is called with each attachment's events. */
function attachedPage() {
  /** @type {any[]} */
  const told = [];
  /** @type {(events: any) => void} */
  let onDial = () => {};
  const dialed = () => new Promise((resolve) => (onDial = resolve));
  const dialer = {
    isAutomatic: false,
    opened: () => {},
    ended: () => {},
    dial: async (/** @type {object} */ _ticket, /** @type {any} */ events) => {
      let end = (/** @type {number} */ _code) => {};
      const ended = new Promise((resolve) => (end = resolve));
      const leave = () => end(4000);
      setImmediate(onDial, events); // the connection has it by then
      return { transport: "websocket", isOpen: true, ended, leave, forsake: leave };
    },
  };
  const connection = new Connection(
    new StoredSession(new PageStorage(storage), undefined, new Tabs(null)),
    /** @type {any} */ (dialer),
    {},
    /** @type {any} */ ({ onMessage: (/** @type {any} */ message) => told.push(message) }),
  );
  return { connection, told, dialed };
}

const VIEW = { model: "pocket", program: "world", prompt: "" };

test("a page asks for a session once the models are loaded, and says until then that they load", async () => {
  const refusal = { code: "not_ready", message: "the model is loading", field: null, retry_after_s: 0.001 };
  const models = [{ name: "a", state: "ready" }, { name: "b", state: "loading" }];
  status.push({ state: "loading", open: false, position: null, refusal, models });
  answers = { "POST /v1/sessions": { id: "s", token: "t", view: VIEW } };
  asked.length = 0;
  const { connection, told, dialed } = attachedPage();
  const first = dialed();
  connection.run();
  await first;
  assert.deepEqual(asked, ["GET /v1/status", "GET /v1/status", "POST /v1/sessions"]);
  assert.deepEqual(told, [
    { type: "page.connecting" },
    { type: "page.waiting", reason: "1 of 2 models are ready.", isLoading: true },
    { type: "page.connecting" },
  ]);
});

test("a page at a server without hope asks for no session, and says why", async () => {
  const refusal = { code: "model_unavailable", message: "given up", field: null, retry_after_s: null };
  status.push({ state: "failed", open: false, position: null, refusal, models: [] });
  asked.length = 0;
  const { connection, told } = attachedPage();
  connection.run();
  while (told.at(-1)?.type !== "page.over") await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(asked, ["GET /v1/status"]);
  assert.equal(told.at(-1).reason, "Given up.");
});

test("a recording that runs is made whole and offered before its session is left", async () => {
  answers = {
    "POST /v1/sessions": { id: "s", token: "t", view: VIEW },
    "POST /v1/sessions/s/recordings/r/stop": {
      id: "r", kind: "recording", frames: 40, duration_us: 4e6, size_bytes: 900,
    },
    "DELETE /v1/sessions/s": {},
  };
  asked.length = 0;
  const { connection, told, dialed } = attachedPage();
  const first = dialed();
  connection.run();
  const events = await first;
  events.onMessage({ type: "session.attached", view: { ...VIEW, recording: "r" } });
  const second = dialed();
  connection.renew({ program: "restyle" });
  await second;
  await untilAsked("DELETE /v1/sessions/s");
  const left = asked.filter((line) => line.includes("/v1/sessions/s"));
  assert.deepEqual(left, ["POST /v1/sessions/s/recordings/r/stop", "DELETE /v1/sessions/s"]);
  const kept = told.find(({ type }) => type === "page.kept");
  assert.deepEqual([kept.name, kept.duration_us, kept.ticket.token], ["r", 4e6, "t"]);
});

test("a recording that cannot be made whole is said to be lost, and the session is left", async () => {
  answers = { "POST /v1/sessions": { id: "s", token: "t", view: VIEW }, "DELETE /v1/sessions/s": {} };
  asked.length = 0;
  const { connection, told, dialed } = attachedPage();
  const first = dialed();
  connection.run();
  (await first).onMessage({ type: "session.updated", view: { ...VIEW, recording: "r" } });
  const second = dialed();
  connection.renew();
  await second;
  await untilAsked("DELETE /v1/sessions/s");
  assert.match(told.find(({ type }) => type === "page.failed").message, /lost: no such thing/);
});

test("what is completed comes with the ticket that opens it", async () => {
  answers = { "POST /v1/sessions": { id: "s", token: "t", view: VIEW } };
  const { connection, told, dialed } = attachedPage();
  const first = dialed();
  connection.run();
  (await first).onMessage({ type: "artifact.completed", kind: "clip", name: "c" });
  assert.equal(told.at(-1).ticket.id, "s");
});

test("a peer is left once, and not at all when the server has ended it", async () => {
  const peer = "/v1/sessions/s/webrtc";
  answers = { [`POST ${peer}`]: { id: "p", sdp: "answer" }, [`DELETE ${peer}/p`]: {} };
  asked.length = 0;
  const ended = new Signalling({ id: "s", token: "t" });
  await ended.offer("offer");
  ended.forget();
  ended.leave();
  const left = new Signalling({ id: "s", token: "t" });
  await left.offer("offer");
  left.leave();
  left.leave();
  await untilAsked(`DELETE ${peer}/p`);
  assert.deepEqual(asked, [`POST ${peer}`, `POST ${peer}`, `DELETE ${peer}/p`]);
});
