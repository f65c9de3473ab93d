// A camera whose pictures are pushed one by one, for a transport that carries no tracks.

import { JpegFrames } from "./jpeg_frame.js";

const USUAL_RATE_HZ = 12;

export class CameraPump {
  #video = document.createElement("video");
  #frames;
  #push;
  #timer;
  #isBusy = false;

  /**
   * @param {MediaStreamTrack} track
   * @param {{width: number, height: number, rate_hz: number}} input
   * @param {(jpeg: Uint8Array, ptsUs: number) => void} push
   * @param {() => boolean} hasRoom whether a picture would be sent at once; otherwise it is skipped
   */
  constructor(track, input, push, hasRoom) {
    this.#frames = new JpegFrames(input);
    this.#push = push;
    this.#video.muted = true;
    this.#video.playsInline = true;
    this.#video.srcObject = new MediaStream([track]);
    this.#video.play().catch(() => {}); // it was closed before it began
    const everyMs = 1000 / (input.rate_hz || USUAL_RATE_HZ);
    this.#timer = setInterval(() => hasRoom() && this.#take(), everyMs);
  }

  close() {
    clearInterval(this.#timer);
    this.#video.srcObject = null;
  }

  async #take() {
    const { videoWidth: width, videoHeight: height } = this.#video;
    if (this.#isBusy || width === 0) return;
    this.#isBusy = true;
    const ptsUs = Math.round(performance.now() * 1000);
    const jpeg = await this.#frames.pack(this.#video, { width, height });
    this.#isBusy = false;
    if (this.#video.srcObject !== null) this.#push(jpeg, ptsUs);
  }
}
