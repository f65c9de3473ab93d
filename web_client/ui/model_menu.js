// The menus of the server's models and of their programs.

import { titleOf } from "./features.js";
import { request } from "../transport/requests.js";

/**
 * @typedef {{name: string, title: string, programs: {name: string}[]}} Model
 * @typedef {{model: string, program: string}} Opening
 */

/** Offers models and programs where there is more than one. */
export class ModelMenu {
  #page;
  /** @type {Model[]} */
  #models = [];
  /** The open session; null after a choice until the next one is open. @type {Opening | null} */
  #session = null;

  /** @param {import("./page.js").Page} page @param {(opening: Opening) => void} onChosen */
  constructor(page, onChosen) {
    this.#page = page;
    const model = page.part("model");
    const program = page.part("program");
    model.addEventListener("change", () => {
      this.#session = null;
      onChosen({ model: model.value, program: this.#programsOf(model.value)[0] });
      forgetAddress();
    });
    program.addEventListener("change", () => {
      this.#session = null;
      onChosen({ model: model.value, program: program.value });
      forgetAddress();
    });
  }

  /** @param {Opening} session the one that is open */
  async show(session) {
    this.#session = session;
    this.#models = (await request("v1/models")).models;
    if (this.#session !== session) return; // the person has chosen something else since
    const { model, program } = session;
    const titles = this.#models.map(({ name }) => new Option(name, name));
    this.#fill("model", titles, model);
    const names = this.#programsOf(model);
    this.#fill("program", names.map((name) => new Option(titleOf(name), name)), program);
  }

  /** @param {"model" | "program"} part @param {HTMLOptionElement[]} options @param {string} now */
  #fill(part, options, now) {
    const select = this.#page.part(part);
    select.replaceChildren(...options);
    select.value = now;
    this.#page.part(`${part}-field`).hidden = options.length < 2;
  }

  /** @param {string} model */
  #programsOf(model) {
    const found = this.#models.find(({ name }) => name === model);
    return found?.programs.map(({ name }) => name) ?? [];
  }
}

/** Remove the choice from the address, so that a reload keeps the one made in the menu. */
function forgetAddress() {
  const url = new URL(location.href);
  url.searchParams.delete("model");
  url.searchParams.delete("program");
  history.replaceState(null, "", url);
}
