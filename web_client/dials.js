// The numbers of a program that a person may turn while it runs.

/** @typedef {import("./features.js").Dial} Dial */

const STEPS = 100;

export class Dials {
  #box;
  #onTurn;
  /** @type {Map<string, {input: HTMLInputElement, output: HTMLOutputElement}>} */
  #rows = new Map();

  /** @param {HTMLElement} box @param {(name: string, value: number) => void} onTurn */
  constructor(box, onTurn) {
    this.#box = box;
    this.#onTurn = onTurn;
  }

  /** @param {Dial[]} dials */
  render(dials) {
    const names = dials.map(({ name }) => name);
    if (names.join() !== [...this.#rows.keys()].join()) this.#build(dials);
    for (const { name, value } of dials) {
      const { input, output } = /** @type {any} */ (this.#rows.get(name));
      if (document.activeElement !== input) input.value = String(value);
      output.textContent = shortOf(Number(input.value));
    }
  }

  /** @param {Dial[]} dials */
  #build(dials) {
    this.#rows.clear();
    const rows = dials.map((dial) => {
      const row = document.createElement("label");
      const input = document.createElement("input");
      const output = document.createElement("output");
      const step = dial.integer ? 1 : (dial.high - dial.low) / STEPS;
      Object.assign(input, { type: "range", min: dial.low, max: dial.high, step });
      input.addEventListener("input", () => (output.textContent = shortOf(Number(input.value))));
      input.addEventListener("change", () => this.#onTurn(dial.name, Number(input.value)));
      const name = document.createElement("span");
      name.textContent = dial.label;
      row.append(name, input, output);
      this.#rows.set(dial.name, { input, output });
      return row;
    });
    this.#box.replaceChildren(...rows);
  }
}

/** @param {number} value */
function shortOf(value) {
  return String(Math.round(value * 100) / 100);
}
