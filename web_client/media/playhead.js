// The reports of what was shown, which generation follows.

/** @typedef {{chunk: number, pts_us: number, waited_us?: number}} Report */

export class Playhead {
  #send;
  /** @type {Report | null} the newest one */
  #newest = null;

  /** @param {(report: Report) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /**
   * Every picture of a chunk was shown or skipped.
   * @param {number} chunk @param {number} ptsUs of its last picture
   * @param {number | null} waitedMs how long its first picture waited to be shown; null: not known
   */
  seen(chunk, ptsUs, waitedMs) {
    this.#newest = { chunk, pts_us: ptsUs };
    const waited = waitedMs === null ? {} : { waited_us: Math.max(0, Math.round(waitedMs * 1000)) };
    this.#send({ ...this.#newest, ...waited });
  }

  /** A picture was shown, perhaps within a chunk. @param {number} ptsUs */
  shown(ptsUs) {
    if (this.#newest !== null && ptsUs > this.#newest.pts_us) this.#newest.pts_us = ptsUs;
  }

  /** Report again, up to the newest picture. */
  tell() {
    if (this.#newest !== null) this.#send({ ...this.#newest });
  }

  /** The session went back to a chunk; those behind it will be made again. @param {number} chunk */
  returned(chunk) {
    if (this.#newest !== null && this.#newest.chunk > chunk) this.forget();
  }

  /** Another link, perhaps to another session. */
  forget() {
    this.#newest = null;
  }
}
