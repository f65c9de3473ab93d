// The parameters that a person may change while a program runs: sliders and switches.

/** @typedef {import("../ui/features.js").Slider} Slider */
/** @typedef {{input: HTMLInputElement, output: HTMLOutputElement | null}} Row */

const STEPS = 100;
const NICE = [5, 2, 1];
const NEAR = 1e-6;

/**
 * The step of a slider: a round number, about a hundredth of its range, that its default lies on.
 * @param {Pick<Slider, "low" | "high" | "default" | "integer">} slider
 * @returns {number | "any"} the latter when its default is no round number
 */
export function stepOf({ low, high, default: usual, integer }) {
  if (integer) return 1;
  const most = ((high - low) / STEPS) * (1 + NEAR);
  const power = Math.floor(Math.log10(most));
  const steps = [power, power - 1, power - 2].flatMap((each) => {
    return NICE.map((nice) => Number(`${nice}e${each}`));
  });
  const fits = (/** @type {number} */ step) => {
    return step <= most && [usual, high].every((value) => isWhole((value - low) / step));
  };
  return steps.find(fits) ?? "any";
}

export class ParameterSliders {
  #box;
  #onTurn;
  /** @type {Map<string, Row>} */
  #rows = new Map();
  /** The slider that a person is moving; its value is not chosen yet. @type {HTMLInputElement | null} */
  #moving = null;

  /** @param {HTMLElement} box @param {(name: string, value: number) => void} onTurn */
  constructor(box, onTurn) {
    this.#box = box;
    this.#onTurn = onTurn;
  }

  /** @param {Slider[]} sliders */
  render(sliders) {
    const names = sliders.map(({ name }) => name);
    if (names.join() !== [...this.#rows.keys()].join()) this.#build(sliders);
    for (const { name, value } of sliders) {
      const { input, output } = /** @type {Row} */ (this.#rows.get(name));
      if (output === null) input.checked = value > 0;
      else if (this.#moving !== input) input.value = String(value);
      if (output !== null) output.textContent = shortOf(Number(input.value));
    }
  }

  /** @param {Slider[]} sliders */
  #build(sliders) {
    this.#rows.clear();
    const labels = sliders.map((slider) => {
      const row = isSwitch(slider) ? this.#switch(slider) : this.#slider(slider);
      this.#rows.set(slider.name, row);
      const label = document.createElement("label");
      const name = document.createElement("span");
      name.textContent = slider.label;
      label.append(name, row.input, ...(row.output === null ? [] : [row.output]));
      label.classList.toggle("switch", row.output === null);
      return label;
    });
    this.#box.replaceChildren(...labels);
  }

  /** @param {Slider} slider @returns {Row} */
  #slider(slider) {
    const { name, low, high } = slider;
    const input = document.createElement("input");
    const output = document.createElement("output");
    Object.assign(input, { type: "range", min: low, max: high, step: stepOf(slider) });
    input.addEventListener("input", () => {
      this.#moving = input;
      output.textContent = shortOf(Number(input.value));
    });
    input.addEventListener("change", () => {
      this.#moving = null;
      this.#onTurn(name, Number(input.value));
    });
    for (const end of ["pointerup", "pointercancel", "blur"]) { // also without a change
      input.addEventListener(end, () => (this.#moving = null));
    }
    return { input, output };
  }

  /** @param {Slider} slider @returns {Row} */
  #switch({ name }) {
    const input = document.createElement("input");
    Object.assign(input, { type: "checkbox", role: "switch" });
    input.addEventListener("change", () => this.#onTurn(name, Number(input.checked)));
    return { input, output: null };
  }
}

/** @param {Slider} slider */
function isSwitch({ integer, low, high }) {
  return integer && low === 0 && high === 1;
}

/** @param {number} count */
function isWhole(count) {
  return Math.abs(count - Math.round(count)) < NEAR;
}

/** @param {number} value */
function shortOf(value) {
  return String(Math.round(value * 100) / 100);
}
