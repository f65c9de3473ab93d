// The last minute as a graph: frames a second as an area, round trip and lead as lines above each other.

import { KEPT_MS } from "../transport/line_stats.js";

/** @typedef {import("../transport/line_stats.js").Sample} Sample */
/** @typedef {"fps" | "leadMs" | "roundTripMs"} Series */

const WIDTH = 300;
const HEIGHT = 60;
/** Scales of milliseconds; the smallest that holds all values is used. */
const SCALES_MS = [50, 100, 250, 500, 1000, 2500, 5000, 10_000];
const LEAST_FPS = 10;

/**
 * @param {readonly Sample[]} samples oldest first
 * @returns {{paths: Record<Series, string>, mostMs: number}} paths in a box of 300 by 60, and what its
 *   height is in milliseconds
 */
export function graphOf(samples) {
  const endMs = samples.at(-1)?.atMs ?? 0;
  const highest = (/** @type {Series} */ series) => Math.max(0, ...samples.map((each) => each[series] ?? 0));
  const highestMs = Math.max(highest("roundTripMs"), highest("leadMs"));
  const mostMs = SCALES_MS.find((scale) => scale >= highestMs) ?? highestMs;
  const mostFps = Math.max(LEAST_FPS, highest("fps"));
  const paths = {
    fps: pathOf(samples, "fps", endMs, mostFps, true),
    leadMs: pathOf(samples, "leadMs", endMs, mostMs, false),
    roundTripMs: pathOf(samples, "roundTripMs", endMs, mostMs, false),
  };
  return { paths, mostMs };
}

/**
 * @param {readonly Sample[]} samples @param {Series} series @param {number} endMs @param {number} most
 * @param {boolean} isArea closed along the bottom
 */
function pathOf(samples, series, endMs, most, isArea) {
  /** @type {string[][]} */
  const runs = [[]];
  for (const sample of samples) {
    const value = sample[series];
    if (value === null) runs.push([]); // unknown: the line has a gap
    else {
      const x = WIDTH * (1 - (endMs - sample.atMs) / KEPT_MS);
      runs.at(-1)?.push(`${x.toFixed(1)},${(HEIGHT * (1 - value / most)).toFixed(1)}`);
    }
  }
  const drawn = runs.filter((points) => points.length > 1);
  return drawn.map((points) => (isArea ? areaOf(points) : `M${points.join("L")}`)).join("");
}

/** @param {string[]} points */
function areaOf(points) {
  const [from] = points[0].split(",");
  const [to] = points[points.length - 1].split(",");
  return `M${from},${HEIGHT}L${points.join("L")}L${to},${HEIGHT}Z`;
}

/** Draws the graph when there is another second to draw. */
export class LineGraph {
  #scale;
  /** @type {Map<string, Element>} */
  #paths = new Map();
  /** @type {readonly Sample[] | null} */
  #drawn = null;

  /** @param {ParentNode} root */
  constructor(root) {
    for (const path of root.querySelectorAll("[data-series]")) {
      this.#paths.set(/** @type {SVGElement} */ (path).dataset.series ?? "", path);
    }
    this.#scale = /** @type {HTMLElement} */ (root.querySelector("[data-part=graph-scale]"));
  }

  /** @param {readonly Sample[]} samples */
  render(samples) {
    if (samples === this.#drawn) return;
    this.#drawn = samples;
    const { paths, mostMs } = graphOf(samples);
    for (const [series, path] of Object.entries(paths)) this.#paths.get(series)?.setAttribute("d", path);
    this.#scale.textContent = `${mostMs} ms`;
  }
}
