// A microphone whose sound is pushed piece by piece, for a transport that carries no tracks.

export class MicrophonePump {
  #context;
  #isClosed = false;

  /**
   * @param {MediaStreamTrack} track
   * @param {number} rateHz that the program takes; 0: any
   * @param {(pcm: Int16Array, rateHz: number) => void} push one channel
   */
  constructor(track, rateHz, push) {
    this.#context = new AudioContext(rateHz > 0 ? { sampleRate: rateHz } : {});
    this.#start(track, push);
  }

  close() {
    this.#isClosed = true;
    this.#context.close();
  }

  /** @param {MediaStreamTrack} track @param {(pcm: Int16Array, rateHz: number) => void} push */
  async #start(track, push) {
    await this.#context.audioWorklet.addModule(new URL("microphone_worklet.js", import.meta.url));
    if (this.#isClosed) return;
    const source = this.#context.createMediaStreamSource(new MediaStream([track]));
    const node = new AudioWorkletNode(this.#context, "pieces", { numberOfOutputs: 0 });
    node.port.onmessage = ({ data }) => {
      if (!this.#isClosed) push(new Int16Array(data), this.#context.sampleRate);
    };
    source.connect(node);
  }
}
