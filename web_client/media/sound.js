// Sound: tracks of a peer connection, or Opus packets in step with the pictures. It is off at first,
// because browsers allow sound only after a gesture.

import { SoundClock } from "./sound_clock.js";

export class Sound {
  #isOn = false;
  #element = document.createElement("audio");
  #clock = new SoundClock();
  /** @type {AudioContext | null} made at the first gesture that asks for sound */
  #context = null;
  /** @type {AudioDecoder | null} */
  #decoder = null;
  /** @type {{codec: string, rate_hz: number, channels?: number} | null} */
  #media = null;
  /** @type {Set<AudioBufferSourceNode>} pieces that play or are scheduled */
  #playing = new Set();

  constructor() {
    this.#element.muted = true;
    this.#element.autoplay = true;
  }

  /** Whether this browser can play packets; it can always play tracks. */
  get decodes() {
    return typeof AudioDecoder !== "undefined" && typeof AudioContext !== "undefined";
  }

  /** @returns {boolean} whether it is on now */
  toggle() {
    this.#isOn = !this.#isOn;
    this.#element.muted = !this.#isOn;
    if (this.#isOn) {
      if (this.decodes) this.#context ??= new AudioContext({ latencyHint: "interactive" });
      this.#context?.resume();
      this.#element.play().catch(() => {}); // without a track yet
    } else {
      this.#stop();
    }
    return this.#isOn;
  }

  /** @param {MediaStreamTrack} track of a peer connection */
  play(track) {
    this.#element.srcObject = new MediaStream([track]);
  }

  /** @param {{codec: string, rate_hz: number, channels?: number}} media a `media.init` of sound */
  init(media) {
    this.#media = media;
    this.#clock.clear();
    this.#closeDecoder();
  }

  /**
   * @param {{pts_us: number, discontinuity: boolean}} header
   * @param {Uint8Array | null} payload an Opus packet
   */
  push(header, payload) {
    if (!this.#isOn || payload === null || this.#media === null) return;
    if (!this.decodes) return;
    this.#decoder ??= this.#open(this.#media);
    if (header.discontinuity) this.#clock.cut();
    const chunk = { type: /** @type {const} */ ("key"), timestamp: header.pts_us, data: payload };
    this.#decoder.decode(new EncodedAudioChunk(chunk));
  }

  /** A picture was shown. @param {number} ptsUs @param {number} atMs */
  follow(ptsUs, atMs) {
    this.#clock.follow(ptsUs, atMs);
  }

  /** Stop all sound that came before. */
  cut() {
    this.#stop();
    this.#clock.cut();
  }

  /** The connection is gone. */
  close() {
    this.#element.srcObject = null;
    this.#stop();
    this.#closeDecoder();
    this.#clock.clear();
  }

  /** @param {{codec: string, channels?: number}} media */
  #open({ codec, channels = 1 }) {
    const decoder = new AudioDecoder({
      output: (data) => this.#onData(data),
      error: () => (this.#decoder = null), // the next packet opens another
    });
    decoder.configure({ codec, sampleRate: 48_000, numberOfChannels: channels });
    return decoder;
  }

  #closeDecoder() {
    if (this.#decoder !== null && this.#decoder.state !== "closed") this.#decoder.close();
    this.#decoder = null;
  }

  /** @param {AudioData} data */
  #onData(data) {
    const context = this.#context;
    const nowMs = performance.now();
    const atMs = this.#clock.place(data.timestamp, data.duration, nowMs);
    if (atMs !== null && context !== null && this.#isOn) {
      const source = context.createBufferSource();
      source.buffer = bufferOf(data, context);
      source.connect(context.destination);
      source.onended = () => this.#playing.delete(source);
      source.start(context.currentTime + (atMs - nowMs) / 1000);
      this.#playing.add(source);
    }
    data.close();
  }

  #stop() {
    for (const source of this.#playing) source.stop();
    this.#playing.clear();
  }
}

/** @param {AudioData} data @param {AudioContext} context */
function bufferOf(data, context) {
  const { numberOfChannels, numberOfFrames, sampleRate } = data;
  const buffer = context.createBuffer(numberOfChannels, numberOfFrames, sampleRate);
  for (let channel = 0; channel < numberOfChannels; channel += 1) {
    const options = { planeIndex: channel, format: /** @type {const} */ ("f32-planar") };
    data.copyTo(buffer.getChannelData(channel), options);
  }
  return buffer;
}
