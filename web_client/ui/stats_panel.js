// The statistics panel: playback, the connection, and both over the last minute.

import { medianMs } from "../media/latency.js";
import { attachmentOf, rateOf } from "../state.js";
import { newest } from "../transport/line_stats.js";
import { LineGraph } from "./line_graph.js";

/** @typedef {import("../state.js").View} View */
/** @typedef {{value: number | null, unit: string}} Metric null: not known */

/**
 * @param {View} view @param {number} [nowMs]
 * @returns {Record<string, Metric>} by name
 */
export function metricsOf(view, nowMs = -Infinity) {
  const line = newest(view.line);
  const bitsPerS = line?.bitsPerS ?? null;
  const isMega = bitsPerS !== null && bitsPerS >= 1e6;
  return {
    fps: rounded(rateOf(view, nowMs), "", 1),
    latency: rounded(medianMs(view.latency), "ms"),
    lead: rounded(view.media === null ? null : view.screen.leadUs / 1000, "ms"),
    dropped: rounded(view.screen.dropped, ""),
    "round-trip": rounded(line?.roundTripMs ?? null, "ms"),
    jitter: rounded(line?.jitterMs ?? null, "ms"),
    bitrate: rounded(bitsPerS && bitsPerS / (isMega ? 1e6 : 1e3), isMega ? "Mbit/s" : "kbit/s", isMega ? 1 : 0),
    loss: rounded(line?.lostShare == null ? null : line.lostShare * 100, "%", 1),
    waiting: rounded(line?.waitingMs ?? null, "ms"),
    allowed: rounded(view.served?.lead.allowed_ms || null, "ms"), // 0: no more than the least
    unseen: rounded(view.served?.lead.unseen_ms ?? null, "ms"),
    queued: rounded(attachmentOf(view, view.served)?.waiting ?? null, ""),
  };
}

/** @param {number | null} value @param {string} unit @param {number} [digits] @returns {Metric} */
function rounded(value, unit, digits = 0) {
  return { value: value === null ? null : Number(value.toFixed(digits)), unit };
}

// At most this often, because rendering the numbers with each picture costs more than the picture.
const RENDER_EVERY_MS = 400;

export class StatsPanel {
  #renderedAtMs = -Infinity;
  /** @type {Map<string, HTMLElement>} */
  #cells = new Map();
  #graph;

  /** @param {ParentNode} root */
  constructor(root) {
    for (const cell of root.querySelectorAll("[data-metric]")) {
      const element = /** @type {HTMLElement} */ (cell);
      this.#cells.set(element.dataset.metric ?? "", element);
    }
    this.#graph = new LineGraph(root);
  }

  /** @param {View} view @param {number} nowMs */
  render(view, nowMs) {
    if (nowMs - this.#renderedAtMs < RENDER_EVERY_MS) return;
    this.#renderedAtMs = nowMs;
    this.#graph.render(view.line.samples);
    for (const [name, { value, unit }] of Object.entries(metricsOf(view, nowMs))) {
      const cell = /** @type {HTMLElement} */ (this.#cells.get(name));
      const known = value === null ? "" : String(value);
      if (cell.dataset.value === known && cell.dataset.unit === unit) continue;
      Object.assign(cell.dataset, { value: known, unit });
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
