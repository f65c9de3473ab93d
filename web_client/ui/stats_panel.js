// The numbers: frames a second, key to picture, lead, dropped frames.

import { medianMs } from "../media/latency.js";
import { framesPerSecond } from "../media/playback_stats.js";

/** @typedef {import("../state.js").View} View */

/**
 * @param {View} view @param {number} [nowMs]
 * @returns {Record<"fps" | "latency" | "lead" | "dropped", {value: number | null, unit: string}>}
 */
export function metricsOf(view, nowMs = -Infinity) {
  const runs = view.link === "open" && view.session?.state === "active";
  const fps = runs ? framesPerSecond(view.screen, nowMs) : null;
  const latency = medianMs(view.latency);
  return {
    fps: { value: fps === null ? null : Math.round(fps * 10) / 10, unit: "" },
    latency: { value: latency === null ? null : Math.round(latency), unit: "ms" },
    lead: { value: view.media === null ? null : Math.round(view.screen.leadUs / 1000), unit: "ms" },
    dropped: { value: view.screen.dropped, unit: "" },
  };
}

// So often at most: a number that changes with each picture costs more than the picture.
const RENDER_EVERY_MS = 400;

export class StatsPanel {
  #renderedAtMs = -Infinity;
  /** @type {Map<string, HTMLElement>} */
  #cells = new Map();

  /** @param {ParentNode} root */
  constructor(root) {
    for (const cell of root.querySelectorAll("[data-metric]")) {
      const element = /** @type {HTMLElement} */ (cell);
      this.#cells.set(element.dataset.metric ?? "", element);
    }
  }

  /** @param {View} view @param {number} nowMs */
  render(view, nowMs) {
    if (nowMs - this.#renderedAtMs < RENDER_EVERY_MS) return;
    this.#renderedAtMs = nowMs;
    for (const [name, { value, unit }] of Object.entries(metricsOf(view, nowMs))) {
      const cell = /** @type {HTMLElement} */ (this.#cells.get(name));
      const known = value === null ? "" : String(value);
      if (cell.dataset.value === known) continue;
      cell.dataset.value = known;
      cell.replaceChildren(value === null ? "–" : String(value));
      if (value !== null && unit) cell.append(small(unit));
    }
  }
}

/** @param {string} text */
function small(text) {
  const element = document.createElement("small");
  element.textContent = text;
  return element;
}
