// Recordings and clips of the session: start and stop them, watch and save them.

import { RECORDING } from "../input/choices.js";
import { isRecording } from "../state.js";
import { send } from "../transport/requests.js";

const CLIP_S = 10;

/** @typedef {import("../state.js").View} View */

export class Recorder {
  #page;
  #view;
  #fail;
  /** @type {{name: string, url: string} | null} the newest one that was fetched */
  #fetched = null;

  /**
   * @param {import("../ui/page.js").Page} page
   * @param {import("../transport/connection.js").Connection} connection
   * @param {() => View} view
   * @param {(type: string, name: string, value: number) => void} choose
   * @param {(code: string, message: string) => void} fail
   */
  constructor(page, connection, view, choose, fail) {
    this.#page = page;
    this.#view = view;
    this.#fail = fail;
    page.part("record").addEventListener("click", () => {
      if (isRecording(view())) choose("record_stop", RECORDING, 0);
      else choose("record_start", RECORDING, 1);
    });
    page.part("clip").addEventListener("click", () => {
      connection.send("clip", { seconds: Math.min(CLIP_S, view().clipS) });
    });
    page.part("keep-watch").addEventListener("click", () => this.#with((url) => this.#watch(url)));
    page.part("keep-save").addEventListener("click", () => this.#with((url) => this.#save(url)));
    page.part("recording-dialog").addEventListener("close", () => page.part("recording-video").pause());
  }

  /** Fetch the newest recording or clip, once, and do something with it. @param {(url: string) => void} act */
  async #with(act) {
    const { kept } = this.#view();
    if (kept === null || kept.ticket === null) return;
    const { id, token } = kept.ticket; // of the session that it was made in, which may be an earlier one
    try {
      if (this.#fetched?.name !== kept.name) {
        const path = `v1/sessions/${id}/recordings/${kept.name}/video.mp4`;
        const blob = await (await send(path, { token })).blob();
        if (this.#fetched !== null) URL.revokeObjectURL(this.#fetched.url);
        this.#fetched = { name: kept.name, url: URL.createObjectURL(blob) };
      }
      act(this.#fetched.url);
    } catch (error) {
      this.#fail("recording", /** @type {Error} */ (error).message);
    }
  }

  /** @param {string} url */
  #watch(url) {
    const video = this.#page.part("recording-video");
    if (video.src !== url) video.src = url;
    this.#page.part("recording-dialog").showModal();
    video.play().catch(() => {}); // the person can use the player's controls
  }

  /** @param {string} url */
  #save(url) {
    const link = document.createElement("a");
    link.href = url;
    link.download = `reverie-${this.#view().kept?.kind}.mp4`;
    link.click();
  }
}
