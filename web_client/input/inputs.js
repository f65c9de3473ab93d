// Media that a person pushes: camera, microphone, pictures and clips.

import { CameraPump } from "../media/camera.js";
import { JpegFrames } from "../media/jpeg_frame.js";
import { LONGEST_S, stillsOf } from "../media/file_frames.js";
import { deviceLimit } from "../ui/limits.js";
import { MicrophonePump } from "../media/microphone.js";
import { SendWindow } from "../transport/send_window.js";

/** @typedef {import("../ui/features.js").Input} Input */
/** @typedef {"video" | "audio"} Kind */

const UNANSWERED = 4;
const WAITING_BYTES = 256 * 1024;
const USUAL_RATE_HZ = 12;
/** @type {Record<Kind, "camera" | "microphone">} */
const BUTTONS = { video: "camera", audio: "microphone" };

export class Inputs {
  #page;
  #connection;
  #inputs;
  #fail;
  #forgive;
  #browser;
  #window = new SendWindow(UNANSWERED, WAITING_BYTES);
  /** Devices that the page has asked the browser for and waits for. @type {Set<Kind>} */
  #opening = new Set();
  /** @type {Map<Kind, {track: MediaStreamTrack, pump: {close: () => void} | null}>} */
  #devices = new Map();

  /**
   * @param {import("../ui/page.js").Page} page
   * @param {import("../transport/connection.js").Connection} connection
   * @param {() => Input[]} inputs that the program takes
   * @param {(code: string, message: string) => void} fail
   * @param {() => void} forgive remove the last error from the page
   * @param {import("../ui/limits.js").Browser} browser
   */
  constructor(page, connection, inputs, fail, forgive, browser) {
    this.#browser = browser;
    this.#page = page;
    this.#connection = connection;
    this.#inputs = inputs;
    this.#fail = fail;
    this.#forgive = forgive;
    for (const kind of /** @type {Kind[]} */ (["video", "audio"])) {
      const button = page.part(BUTTONS[kind]);
      button.addEventListener("click", () => this.#toggle(kind));
    }
    page.part("file-button").addEventListener("click", () => page.part("file").click());
    page.part("file").addEventListener("change", () => this.#pushFile());
  }

  /** Attached, perhaps over another transport or to another session. */
  onAttached() {
    this.#window.clear();
    for (const kind of [...this.#devices.keys()]) {
      if (this.#inputOf(kind) === undefined) this.#stop(kind);
      else this.#feedAgain(kind);
    }
  }

  /** @param {Kind} kind */
  #feedAgain(kind) {
    try {
      this.#feed(kind);
    } catch (error) {
      this.#stop(kind);
      this.#failDevice(kind, error);
    }
  }

  /** @param {Kind} kind @param {unknown} error */
  #failDevice(kind, error) {
    const { message } = /** @type {Error} */ (error);
    this.#fail("device", `The ${BUTTONS[kind]} cannot be used: ${message}`);
  }

  /** @param {string | null | undefined} command that was answered */
  onAnswer(command) {
    this.#window.answered(command);
  }

  /** @param {Kind} kind @param {"latest" | "fifo"} [merge] the preferred merge rule */
  #inputOf(kind, merge = "latest") {
    const fitting = this.#inputs().filter((input) => input.kind === kind);
    return fitting.find((input) => input.merge === merge) ?? fitting[0];
  }

  /** @param {Kind} kind */
  async #toggle(kind) {
    if (this.#devices.has(kind)) {
      this.#stop(kind);
      return;
    }
    const input = this.#inputOf(kind);
    if (input === undefined || this.#opening.has(kind)) return;
    const limit = deviceLimit(BUTTONS[kind], this.#browser);
    if (limit !== null) {
      this.#fail("device", limit);
      return;
    }
    this.#opening.add(kind);
    try {
      const stream = await navigator.mediaDevices.getUserMedia(constraintsFor(kind, input));
      const [track] = stream.getTracks();
      track.onended = () => this.#stop(kind); // the device was unplugged, or the permission withdrawn
      this.#devices.set(kind, { track, pump: null });
      this.#feed(kind);
    } catch (error) {
      this.#failDevice(kind, error);
    } finally {
      this.#opening.delete(kind);
    }
    this.#showPressed(kind);
  }

  /** @param {Kind} kind */
  #stop(kind) {
    const device = this.#devices.get(kind);
    if (device === undefined) return;
    this.#devices.delete(kind);
    this.#connection.attachment?.feed(kind, null);
    device.pump?.close();
    device.track.onended = null;
    device.track.stop();
    this.#showPressed(kind);
  }

  /** Feed a device that is on to the current attachment. @param {Kind} kind */
  #feed(kind) {
    const device = this.#devices.get(kind);
    const input = this.#inputOf(kind);
    if (device === undefined || input === undefined) return;
    device.pump?.close();
    const isCarried = this.#connection.attachment?.feed(kind, device.track) ?? true;
    device.pump = isCarried ? null : this.#pumpOf(kind, device.track, input);
  }

  /** @param {Kind} kind @param {MediaStreamTrack} track @param {Input} input */
  #pumpOf(kind, track, { name: stream, ...input }) {
    if (kind === "audio") {
      let ptsUs = Math.round(performance.now() * 1000);
      return new MicrophonePump(track, 0, (pcm, rateHz) => {
        const header = { stream, codec: "pcm16", pts_us: ptsUs, rate_hz: rateHz, channels: 1 };
        ptsUs += Math.round((pcm.length * 1e6) / rateHz);
        if (this.#hasRoom()) this.#push(header, new Uint8Array(pcm.buffer));
      });
    }
    const push = (/** @type {Uint8Array} */ jpeg, /** @type {number} */ ptsUs) => {
      this.#push({ stream, codec: "jpeg", pts_us: ptsUs }, jpeg);
    };
    return new CameraPump(track, input, push, () => this.#hasRoom());
  }

  async #pushFile() {
    const field = this.#page.part("file");
    const [file] = field.files;
    const input = this.#inputOf("video", "fifo");
    if (file === undefined || input === undefined) return;
    field.value = ""; // so that the same file can be chosen again
    this.#forgive(); // the error was about the previous file
    try {
      const frames = new JpegFrames(input);
      for await (const still of stillsOf(file, input.rate_hz || USUAL_RATE_HZ)) {
        const jpeg = await frames.pack(still.picture, still.size);
        while (!this.#hasRoom()) await this.#window.next();
        const { ptsUs, isLast: last } = still;
        if (!this.#push({ stream: input.name, codec: "jpeg", pts_us: ptsUs, last }, jpeg)) {
          throw new Error("the server cannot be reached");
        }
        if (still.isCut && ptsUs === 0) {
          this.#fail("clip_cut", `The clip is long: only its first ${LONGEST_S} seconds are used.`);
        }
      }
    } catch (error) {
      this.#fail("file", `The file could not be used: ${/** @type {Error} */ (error).message}`);
    }
  }

  #hasRoom() {
    return this.#window.hasRoom(this.#connection.attachment?.waitingBytes() ?? 0);
  }

  /** @param {object} header @param {Uint8Array} payload @returns {boolean} whether it was sent */
  #push(header, payload) {
    const id = this.#connection.sendMedia("push_media", header, payload);
    if (id !== null) this.#window.sent(id);
    return id !== null;
  }

  /** @param {Kind} kind */
  #showPressed(kind) {
    const button = this.#page.part(BUTTONS[kind]);
    button.setAttribute("aria-pressed", String(this.#devices.has(kind)));
  }
}

/** @param {Kind} kind @param {Input} input @returns {MediaStreamConstraints} */
function constraintsFor(kind, { width, height, rate_hz }) {
  if (kind === "audio") return { audio: { echoCancellation: true, noiseSuppression: true } };
  const frameRate = { ideal: rate_hz || USUAL_RATE_HZ };
  return { video: { width: { ideal: Math.max(width, 320) }, height: { ideal: Math.max(height, 240) }, frameRate } };
}
