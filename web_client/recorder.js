// Keeping what is shown: a recording while it runs, or the last seconds as a clip.

import { request, send } from "./requests.js";

const CLIP_S = 10;

export class Recorder {
  #page;
  #connection;
  #fail;
  /** @type {string | null} the recording that runs */
  #running = null;
  #url = "";

  /**
   * @param {import("./page.js").Page} page
   * @param {import("./connection.js").Connection} connection
   * @param {(code: string, message: string) => void} fail
   */
  constructor(page, connection, fail) {
    this.#page = page;
    this.#connection = connection;
    this.#fail = fail;
    page.part("record").addEventListener("click", () => this.#guard(() => this.#toggle()));
    page.part("clip").addEventListener("click", () => this.#guard(() => this.#clip()));
  }

  async #toggle() {}

  async #clip() {}

  /** @param {() => Promise<void>} act */
  async #guard(act) {
    try {
      await act();
    } catch (error) {
      this.#fail("recording", /** @type {Error} */ (error).message);
    }
  }
}
