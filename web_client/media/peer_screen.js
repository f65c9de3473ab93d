// The picture of a peer connection: the browser decodes and paces it, and this says what was shown.

import { PresentedFrames } from "./presented_frames.js";

/**
 * @typedef {import("./presented_frames.js").Announced} Announced
 * @typedef {import("./screen.js").ScreenEvents} ScreenEvents
 */

const LOOK_EVERY_MS = 200;

/** Shows what the video element shows on the canvas, and otherwise is what `Screen` is. */
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
    this.#video.play().catch(() => {}); // muted, so only when the page is hidden; `show` tries again
    this.#watch = setInterval(() => this.#giveUp(performance.now()), LOOK_EVERY_MS);
    this.#await(track);
  }

  /** @param {{width: number, height: number}} media */
  init({ width, height }) {
    if (this.#canvas.width === width && this.#canvas.height === height) return;
    this.#canvas.width = width;
    this.#canvas.height = height;
  }

  /** @param {import("../transport/wire.js").MediaChunk} header of a picture that is on its way */
  push(header) {
    const announced = /** @type {Announced} */ (header);
    if (this.#isOpen) this.#tell(this.#presented.announce(announced, performance.now()));
  }

  /** Drop what is due before `ptsUs` and was not shown. @param {number} ptsUs */
  dropBefore(ptsUs) {
    this.#presented.dropBefore(ptsUs);
  }

  /** Nobody looks: report nothing, so that the server makes nothing. */
  hide() {
    this.#isHidden = true;
  }

  /** Somebody looks again. */
  show() {
    if (!this.#isHidden) return;
    this.#isHidden = false;
    if (!this.#isOpen) return;
    this.#video.play().catch(() => {});
    this.#giveUp(Infinity); // what came meanwhile has gone by
    this.#events.onNeedKey();
  }

  /** The browser's own buffer holds what waits: `measure` of the attachment tells how long. */
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
      this.#onFrame(atMs, metadata.rtpTimestamp ?? null);
    });
  }

  /** @param {number} atMs @param {number | null} rtp null where the browser does not say it */
  #onFrame(atMs, rtp) {
    if (this.#isHidden) return;
    if (rtp !== null && this.#presented.isCut(rtp)) return; // an interrupt has dropped it
    const { width, height } = this.#canvas;
    // An odd size is padded to an even one; only the true size is drawn.
    this.#context.drawImage(this.#video, 0, 0, width, height, 0, 0, width, height);
    this.#events.onDrawn(atMs);
    const presented = this.#presented;
    this.#tell(rtp === null ? presented.presentNewest(atMs) : presented.present(rtp, atMs));
  }

  /** @param {import("./presented_frames.js").Passed | null} passed */
  #tell(passed) {
    if (passed === null) return;
    const { pts_us: ptsUs, duration_us: durationUs } = passed.shown;
    if (passed.chunk !== null) this.#events.onSeen(passed.chunk, ptsUs);
    this.#events.onShown({ ptsUs, durationUs }, passed.atMs);
    if (passed.skipped > 0) this.#events.onSkipped(passed.skipped);
  }

  /** What is lost must not hold the world up, which goes on as far as it is seen. @param {number} nowMs */
  #giveUp(nowMs) {
    if (this.#isHidden) return;
    const lost = this.#presented.giveUp(nowMs);
    if (lost === null) return;
    if (lost.chunk !== null) this.#events.onSeen(lost.chunk, lost.shown.pts_us);
    this.#events.onSkipped(lost.skipped);
    this.#events.onNeedKey();
  }
}
