// One WebSocket attachment, from its hello to its end.

import { PROTOCOL } from "./attachment.js";
import { AnswerTimes, Jitter } from "./line_stats.js";
import { LEFT, SILENT } from "./close_reason.js";
import { makeBinary, parseBinary, parseText, WireError } from "./wire.js";

/** @typedef {import("./attachment.js").Attachment} Attachment */
/** @typedef {import("./attachment.js").AttachmentEvents} AttachmentEvents */

const WATCH_EVERY_MS = 1000;
const ATTACH_LIMIT_MS = 8000;
// After silence while pictures are due: ask for a key frame, then close.
const ASK_AFTER_MS = 4000;
const DEAD_AFTER_MS = 10_000;
const BAD_FRAME = 4400;

/** @implements {Attachment} */
export class SocketAttachment {
  transport = /** @type {const} */ ("websocket");
  /** @type {Promise<number>} the close code; it never rejects */
  ended;
  /** Whether the server has accepted this client. */
  isOpen = false;
  #socket;
  #events;
  #end = (/** @type {number} */ _code) => {};
  #heardAtMs = performance.now();
  #bytes = 0;
  #jitter = new Jitter();
  #answers = new AnswerTimes();
  #asked = false;
  #watch;

  /**
   * @param {{id: string, token: string}} ticket
   * @param {string[]} codecs best first
   * @param {AttachmentEvents} events
   */
  constructor({ id, token }, codecs, events) {
    this.#events = events;
    this.ended = new Promise((resolve) => (this.#end = resolve));
    const url = new URL(`v1/sessions/${id}/ws`, document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    this.#socket = new WebSocket(url);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => {
      const hello = { type: "hello", protocol: PROTOCOL, id: "hello", role: "driver" };
      this.#socket.send(JSON.stringify({ ...hello, token, codecs }));
    };
    this.#socket.onmessage = ({ data }) => this.#onData(data);
    this.#socket.onclose = ({ code }) => this.#finish(code);
    this.#watch = setInterval(() => this.#onWatch(), WATCH_EVERY_MS);
  }

  /** @param {{id: string, type: string}} command @returns {boolean} whether it was sent */
  send(command) {
    if (!this.isOpen || this.#socket.readyState !== WebSocket.OPEN) return false;
    this.#answers.sent(command.id, performance.now());
    this.#socket.send(JSON.stringify(command));
    return true;
  }

  /** @param {object} header @param {Uint8Array} payload @returns {boolean} whether it was sent */
  sendMedia(header, payload) {
    if (!this.isOpen || this.#socket.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(makeBinary(header, payload));
    return true;
  }

  waitingBytes() {
    return this.#socket.bufferedAmount;
  }

  /** TCP repeats lost packets without telling the page. */
  async measure() {
    return {
      roundTripMs: this.#answers.shortestMs(performance.now()),
      jitterMs: this.#jitter.ms,
      bytes: this.#bytes,
      packets: null,
      lost: null,
      bufferedS: null,
      buffered: 0,
    };
  }

  /** A WebSocket carries no tracks. */
  feed() {
    return false;
  }

  /** Here any message is a sign of life. */
  notePresented() {}

  /** The browser closes the socket with the page. */
  hangUp() {}

  /** End at once, without waiting for the server. */
  leave(code = LEFT) {
    this.#finish(code);
    this.#socket.close();
  }

  forsake() {
    this.leave();
  }

  /** @param {string | ArrayBuffer} data */
  #onData(data) {
    this.#heardAtMs = performance.now();
    this.#bytes += typeof data === "string" ? data.length : data.byteLength;
    this.#asked = false;
    try {
      if (typeof data === "string") this.#onMessage(parseText(data));
      else this.#onBinary(data);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.leave(BAD_FRAME);
    }
  }

  /** @param {{type: string, command?: string | null}} message */
  #onMessage(message) {
    if (message.type === "session.attached") this.isOpen = true;
    if (message.command) this.#answers.answered(message.command, this.#heardAtMs);
    this.#events.onMessage(message);
  }

  /** @param {ArrayBuffer} data */
  #onBinary(data) {
    const { header, payload } = parseBinary(data);
    this.#jitter.add(header.time_us, this.#heardAtMs);
    this.#events.onMedia(header, payload);
  }

  #onWatch() {
    const silentMs = performance.now() - this.#heardAtMs;
    if (!this.isOpen) {
      if (silentMs > ATTACH_LIMIT_MS) this.leave(SILENT);
    } else if (!this.#events.expectsPictures()) {
      this.#heardAtMs = performance.now();
    } else if (silentMs > DEAD_AFTER_MS) {
      this.leave(SILENT);
    } else if (silentMs > ASK_AFTER_MS && !this.#asked) {
      this.#asked = this.send({ id: "still-there", type: "request_key_frame" });
    }
  }

  /** @param {number} code */
  #finish(code) {
    clearInterval(this.#watch);
    this.isOpen = false;
    this.#socket.onmessage = null;
    this.#socket.onclose = null;
    this.#end(code);
  }
}
