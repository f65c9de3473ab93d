// In the audio thread: collects the microphone's samples into pieces of a fixed length.

const PIECE_S = 0.04;

class Pieces extends AudioWorkletProcessor {
  #piece = new Int16Array(Math.round(sampleRate * PIECE_S));
  #filled = 0;

  /** @param {Float32Array[][]} inputs @returns {boolean} whether to continue */
  process([[channel]]) {
    for (const sample of channel ?? []) {
      this.#piece[this.#filled] = Math.max(-1, Math.min(1, sample)) * 32767;
      this.#filled += 1;
      if (this.#filled < this.#piece.length) continue;
      this.port.postMessage(this.#piece.slice().buffer);
      this.#filled = 0;
    }
    return true;
  }
}

registerProcessor("pieces", Pieces);
