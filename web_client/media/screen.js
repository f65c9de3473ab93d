// The picture over a WebSocket: decodes, draws each picture when it is due, and reports it.

import { Pacer } from "./pacer.js";
import { createDecoder } from "./video_decoder.js";

/**
 * @typedef {import("../transport/wire.js").MediaChunk} MediaChunk
 * @typedef {object} Picture
 * @property {VideoFrame | ImageBitmap} image
 * @property {number} ptsUs
 * @property {number} durationUs
 * @property {boolean} discontinuity
 * @property {number} chunk
 * @property {boolean} last
 * @property {number} readyAtMs when it was decoded
 *
 * @typedef {object} ScreenEvents
 * @property {(atMs: number) => void} onDrawn as soon as a picture is drawn
 * @property {(chunk: number, ptsUs: number, waitedMs: number | null) => void} onSeen every picture of the
 *   chunk was shown or skipped; `waitedMs` is how long its first one waited, decoded, to be shown
 * @property {(picture: {ptsUs: number, durationUs: number}, atMs: number) => void} onShown
 *   at the browser's next frame
 * @property {(count: number) => void} onSkipped pictures that will never be shown
 * @property {() => void} onNeedKey the decoder needs a key frame
 * @property {(error: Error) => void} onFailure the decoder failed repeatedly
 */

// How many pictures a hidden page keeps. The server stops one lead ahead of the playhead.
const HELD_WHILE_HIDDEN = 64;
const FAILURES_ALLOWED = 2;
/** The name of the error when the browser takes a decoder away for another page. */
const RECLAIMED = "QuotaExceededError";

export class Screen {
  #canvas;
  #context;
  #events;
  /** @type {Pacer<Picture>} */
  #pacer = new Pacer();
  /** @type {MediaChunk | null} the last picture of a lost chunk, not reported yet */
  #passed = null;
  /** @type {import("./video_decoder.js").Decoder | null} */
  #decoder = null;
  /** @type {{codec: string, container: string, width: number, height: number} | null} */
  #media = null;
  /** @type {Map<number, MediaChunk>} pictures that are being decoded, by time */
  #decoding = new Map();
  /** @type {{header: MediaChunk, payload: Uint8Array}[]} */
  #held = [];
  #hidden = false;
  #timer = 0;
  #failures = 0;
  /** How long the first picture of the newest chunk waited. @type {{chunk: number, waitedMs: number} | null} */
  #first = null;

  /** @param {HTMLCanvasElement} canvas @param {ScreenEvents} events */
  constructor(canvas, events) {
    this.#canvas = canvas;
    this.#context = /** @type {CanvasRenderingContext2D} */ (
      canvas.getContext("2d", { alpha: false })
    );
    this.#events = events;
  }

  /** @param {{codec: string, container: string, width: number, height: number}} media */
  init(media) {
    this.#media = media;
    this.#held = [];
    if (this.#canvas.width !== media.width || this.#canvas.height !== media.height) {
      this.#canvas.width = media.width;
      this.#canvas.height = media.height;
    }
    this.#open();
  }

  /** @param {MediaChunk} header @param {Uint8Array | null} payload */
  push(header, payload) {
    if (payload === null) return; // of a peer connection that has ended
    if (this.#hidden) this.#hold(header, payload);
    else this.#decode(header, payload);
  }

  /**
   * The session went back: drop the chunks behind the one that it continues from.
   * @param {number} chunk -1: all @param {number} nextUs when the next picture begins
   */
  dropAfter(chunk, nextUs) {
    for (const [pts, header] of this.#decoding) {
      if (header.chunk > chunk && pts < nextUs) this.#decoding.delete(pts);
    }
    this.#held = this.#held.filter(({ header }) => header.chunk <= chunk || header.pts_us >= nextUs);
    const isDropped = (/** @type {Picture} */ picture) => picture.chunk > chunk && picture.ptsUs < nextUs;
    for (const { image } of this.#pacer.drop(isDropped)) image.close();
    if (chunk < 0) this.#first = null; // chunks may be made again, under the same numbers
  }

  /** The page is hidden: show and report nothing, so that the server generates nothing. */
  hide() {
    this.#hidden = true;
    clearTimeout(this.#timer);
  }

  /** The page is visible again. The browser may have taken the decoder away, hence the key frame. */
  show() {
    if (!this.#hidden) return;
    this.#hidden = false;
    if (this.#decoder === null) this.#open();
    for (const { header, payload } of this.#held.splice(0)) this.#decode(header, payload);
    this.#passOver();
    this.#events.onNeedKey();
    this.#present();
  }

  /** How long the newest picture that came waits here. @returns {number} */
  get waitingMs() {
    const decoding = [...this.#decoding.values()].reduce((sum, header) => sum + header.duration_us, 0);
    return (decoding + this.#pacer.waitingUs) / 1000;
  }

  /** The stream has ended: free all waiting pictures. */
  close() {
    clearTimeout(this.#timer);
    this.#decoder?.close();
    this.#decoder = null;
    this.#held = [];
    this.#first = null;
    this.dropAfter(-1, Infinity);
  }

  #open() {
    this.#decoder?.close();
    this.#decoding.clear();
    if (this.#media === null) return;
    this.#decoder = createDecoder(
      this.#media,
      (image, ptsUs) => this.#onImage(image, ptsUs),
      (error) => this.#onDecoderFailed(error),
    );
  }

  /** @param {MediaChunk} header @param {Uint8Array} payload */
  #hold(header, payload) {
    if (this.#held.length === HELD_WHILE_HIDDEN) {
      this.#skip(this.#held.splice(0).map(({ header }) => header));
      this.#open(); // it needs the key frame that `show` asks for
    }
    this.#held.push({ header, payload });
  }

  /** @param {MediaChunk} header @param {Uint8Array} payload */
  #decode(header, payload) {
    this.#decoding.set(header.pts_us, header);
    const encoded = { ptsUs: header.pts_us, key: header.key, data: payload };
    if (this.#decoder?.decode(encoded)) return;
    this.#decoding.delete(header.pts_us);
    this.#skip([header]);
  }

  /**
   * Skip pictures that cannot be shown. A chunk whose last picture is lost is reported as seen,
   * because generation waits for the playhead.
   * @param {MediaChunk[]} lost
   */
  #skip(lost) {
    this.#events.onSkipped(lost.length);
    this.#passed = lost.filter(({ last }) => last).at(-1) ?? this.#passed;
    if (!this.#hidden) this.#passOver();
  }

  #passOver() {
    if (this.#passed !== null) this.#events.onSeen(this.#passed.chunk, this.#passed.pts_us, null);
    this.#passed = null;
  }

  /** @param {VideoFrame | ImageBitmap} image @param {number} ptsUs */
  #onImage(image, ptsUs) {
    const header = this.#decoding.get(ptsUs);
    this.#decoding.delete(ptsUs);
    if (header === undefined) {
      image.close(); // dropped while it was decoded
      return;
    }
    this.#failures = 0;
    const { duration_us: durationUs, discontinuity, chunk, last } = header;
    const readyAtMs = performance.now();
    const picture = { image, ptsUs, durationUs, discontinuity, chunk, last, readyAtMs };
    this.#pacer.add(picture, readyAtMs);
    this.#present();
  }

  /** @param {Error} error */
  #onDecoderFailed(error) {
    // A browser takes the decoder of a hidden page away; `show` opens another.
    if (this.#hidden || error.name === RECLAIMED) {
      this.#decoder?.close();
      this.#decoder = null;
      this.#skip(this.#taken());
      if (!this.#hidden) this.#reopen();
      return;
    }
    this.#failures += 1;
    this.#skip(this.#taken());
    if (this.#failures > FAILURES_ALLOWED) {
      this.#events.onFailure(error);
      return;
    }
    this.#reopen();
  }

  /** @returns {MediaChunk[]} the pictures that were being decoded */
  #taken() {
    const headers = [...this.#decoding.values()];
    this.#decoding.clear();
    return headers;
  }

  #reopen() {
    this.#open();
    this.#events.onNeedKey();
  }

  #present() {
    clearTimeout(this.#timer);
    if (this.#hidden) return;
    const now = performance.now();
    const { picture, waitMs } = this.#pacer.take(now);
    if (picture !== null) {
      this.#draw(picture, now);
      this.#present();
    } else if (waitMs !== Infinity) {
      this.#timer = setTimeout(() => this.#present(), waitMs);
    }
  }

  /** @param {Picture} picture @param {number} nowMs */
  #draw(picture, nowMs) {
    const { width, height } = this.#canvas;
    // An odd size is padded to an even one for H.264; only the true size is drawn.
    this.#context.drawImage(picture.image, 0, 0, width, height, 0, 0, width, height);
    picture.image.close();
    this.#events.onDrawn(nowMs);
    if (this.#first?.chunk !== picture.chunk) {
      this.#first = { chunk: picture.chunk, waitedMs: nowMs - picture.readyAtMs };
    }
    if (picture.last) this.#events.onSeen(picture.chunk, picture.ptsUs, this.#first.waitedMs);
    requestAnimationFrame((atMs) => this.#events.onShown(picture, Math.max(atMs, nowMs)));
  }
}
