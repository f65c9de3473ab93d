// The picture of a peer connection: the browser decodes and paces it; this reports what was shown.

import { PresentedFrames } from "./presented_frames.js";

/**
 * @typedef {import("./presented_frames.js").Announced} Announced
 * @typedef {import("./screen.js").ScreenEvents} ScreenEvents
 */

const LOOK_EVERY_MS = 200;

/** Draws the video element on the canvas; has the interface of `Screen`. */
export class PeerScreen {
  #video;
  #canvas;
  #context;
  #events;
  #presented = new PresentedFrames();
  #isHidden = false;
  #isOpen = false;
  #watch = 0;

  /**
   * @param {HTMLVideoElement} video @param {HTMLCanvasElement} canvas @param {ScreenEvents} events
   */
  constructor(video, canvas, events) {
    this.#video = video;
    this.#canvas = canvas;
    this.#context = /** @type {CanvasRenderingContext2D} */ (
      canvas.getContext("2d", { alpha: false })
    );
    this.#events = events;
  }

  /** @param {MediaStreamTrack} track */
  play(track) {
    this.close();
    this.#isOpen = true;
    this.#video.srcObject = new MediaStream([track]);
    this.#video.play().catch(() => {}); // fails only while hidden; `show` tries again
    this.#watch = setInterval(() => this.#giveUp(performance.now()), LOOK_EVERY_MS);
    this.#await(track);
  }

  /** @param {{width: number, height: number}} media */
  init({ width, height }) {
    if (this.#canvas.width === width && this.#canvas.height === height) return;
    this.#canvas.width = width;
    this.#canvas.height = height;
  }

  /** @param {import("../transport/wire.js").MediaChunk} header of a picture that was sent */
  push(header) {
    const announced = /** @type {Announced} */ (header);
    if (this.#isOpen) this.#tell(this.#presented.announce(announced, performance.now()));
  }

  /**
   * The session went back: drop the chunks behind the one that it continues from.
   * @param {number} chunk -1: all @param {number} nextUs when the next picture begins
   */
  dropAfter(chunk, nextUs) {
    this.#presented.dropAfter(chunk, nextUs);
  }

  /** The page is hidden: report nothing, so that the server generates nothing. */
  hide() {
    this.#isHidden = true;
  }

  /** The page is visible again. */
  show() {
    if (!this.#isHidden) return;
    this.#isHidden = false;
    if (!this.#isOpen) return;
    this.#video.play().catch(() => {});
    this.#giveUp(Infinity); // pictures that came while it was hidden are past
    this.#events.onNeedKey();
  }

  /** Pictures wait in the browser's jitter buffer; `measure` of the attachment tells how long. */
  get waitingMs() {
    return null;
  }

  close() {
    this.#isOpen = false;
    clearInterval(this.#watch);
    this.#presented.clear();
    this.#video.srcObject = null;
  }

  /** @param {MediaStreamTrack} track */
  #await(track) {
    this.#video.requestVideoFrameCallback((atMs, metadata) => {
      const stream = /** @type {MediaStream | null} */ (this.#video.srcObject);
      if (!this.#isOpen || !stream?.getTracks().includes(track)) return;
      this.#await(track);
      this.#onFrame(atMs, metadata.rtpTimestamp ?? null, waitedMsOf(metadata));
    });
  }

  /**
   * @param {number} atMs @param {number | null} rtp null where the browser does not tell
   * @param {number | null} waitedMs
   */
  #onFrame(atMs, rtp, waitedMs) {
    if (this.#isHidden) return;
    if (rtp !== null && this.#presented.isCut(rtp)) return; // dropped by an interrupt
    const { width, height } = this.#canvas;
    // An odd size is padded to an even one; only the true size is drawn.
    this.#context.drawImage(this.#video, 0, 0, width, height, 0, 0, width, height);
    this.#events.onDrawn(atMs);
    const presented = this.#presented;
    this.#tell(rtp === null ? presented.presentNewest(atMs) : presented.present(rtp, atMs, waitedMs));
  }

  /** @param {import("./presented_frames.js").Passed | null} passed */
  #tell(passed) {
    if (passed === null) return;
    const { pts_us: ptsUs, duration_us: durationUs } = passed.shown;
    if (passed.chunk !== null) this.#events.onSeen(passed.chunk, ptsUs, passed.waitedMs);
    this.#events.onShown({ ptsUs, durationUs }, passed.atMs);
    if (passed.skipped > 0) this.#events.onSkipped(passed.skipped);
  }

  /** Report lost pictures as seen, because generation waits for the playhead. @param {number} nowMs */
  #giveUp(nowMs) {
    if (this.#isHidden) return;
    const lost = this.#presented.giveUp(nowMs);
    if (lost === null) return;
    if (lost.chunk !== null) this.#events.onSeen(lost.chunk, lost.shown.pts_us, null);
    this.#events.onSkipped(lost.skipped);
    this.#events.onNeedKey();
  }
}

/**
 * How long a picture waited in the browser, received and decoded, before it was presented.
 * @param {{presentationTime: number, receiveTime?: number, processingDuration?: number}} metadata
 * @returns {number | null} null where the browser does not tell
 */
export function waitedMsOf({ presentationTime, receiveTime, processingDuration = 0 }) {
  if (receiveTime === undefined) return null;
  return Math.max(0, presentationTime - receiveTime - processingDuration * 1000);
}
