// The frame of the picture: its size, and the light around it.

// Whole multiples of a pixel are crisp; where they would fill less of the room than this, fill it.
const LEAST_FILL = 0.85;
// The light is repainted at most this often, and only after a visible change.
const LIGHT_EVERY_MS = 2000;
const VISIBLE_CHANGE = 16;

/**
 * The largest size, in CSS pixels, at which a picture fits into a room.
 * @param {{width: number, height: number}} picture @param {{width: number, height: number}} room
 * @param {number} pixelRatio device pixels in a CSS pixel
 */
export function fit(picture, room, pixelRatio) {
  const most = Math.min(room.width / picture.width, room.height / picture.height) * pixelRatio;
  const whole = Math.floor(most);
  const scale = (whole >= most * LEAST_FILL ? whole : most) / pixelRatio;
  return { width: picture.width * scale, height: picture.height * scale };
}

/** @typedef {[number, number, number]} Colour red, green and blue, 0 to 255 */

/**
 * Whether the difference between two lights is visible.
 * @param {Colour[]} a @param {Colour[]} b of the same length, or empty
 */
export function isOther(a, b) {
  const differs = (/** @type {Colour} */ colour, /** @type {number} */ at) =>
    colour.some((value, channel) => Math.abs(value - b[at][channel]) > VISIBLE_CHANGE);
  return a.length !== b.length || a.some(differs);
}

export class Layout {
  #viewport;
  #frame;
  #picture;
  #glow;
  /** Two pixels, which hold the mean colours of the picture's halves. */
  #halves = /** @type {CanvasRenderingContext2D | null} */ (
    Object.assign(document.createElement("canvas"), { width: 2, height: 1 }).getContext("2d", {
      alpha: false,
      willReadFrequently: true,
    })
  );
  #lookedAtMs = -Infinity;
  /** @type {Colour[]} */
  #light = [];

  /**
   * @param {HTMLElement} viewport @param {HTMLElement} frame
   * @param {HTMLCanvasElement} picture @param {HTMLElement} glow
   */
  constructor(viewport, frame, picture, glow) {
    this.#viewport = viewport;
    this.#frame = frame;
    this.#picture = picture;
    this.#glow = glow;
    if (this.#halves !== null) this.#halves.imageSmoothingQuality = "high";
    // In the next frame, because the height of the page may depend on the picture.
    const resize = () => requestAnimationFrame(() => this.resize());
    if (typeof ResizeObserver === "undefined") addEventListener("resize", resize);
    else new ResizeObserver(resize).observe(viewport);
  }

  /** Fit the picture to its room. */
  resize() {
    const { clientWidth, clientHeight } = this.#viewport;
    const { flexGrow, paddingLeft, paddingTop } = getComputedStyle(this.#viewport);
    const isStacked = flexGrow === "0"; // then its height follows ours
    const room = {
      width: clientWidth - 2 * Number.parseFloat(paddingLeft),
      height: isStacked ? innerHeight * 0.7 : clientHeight - 2 * Number.parseFloat(paddingTop),
    };
    const { width, height } = fit(this.#picture, room, devicePixelRatio);
    this.#frame.style.width = `${width}px`;
    this.#frame.style.height = `${height}px`;
  }

  /** Repaint the light from the picture that was just drawn, if it is due. @param {number} nowMs */
  light(nowMs) {
    if (this.#halves === null || nowMs - this.#lookedAtMs < LIGHT_EVERY_MS) return;
    this.#lookedAtMs = nowMs;
    this.#halves.drawImage(this.#picture, 0, 0, 2, 1);
    const { data } = this.#halves.getImageData(0, 0, 2, 1);
    /** @type {Colour[]} */
    const light = [0, 4].map((at) => [data[at], data[at + 1], data[at + 2]]);
    if (!isOther(light, this.#light)) return;
    this.#light = light;
    this.#glow.style.setProperty("--light-left", `rgb(${light[0].join(" ")})`);
    this.#glow.style.setProperty("--light-right", `rgb(${light[1].join(" ")})`);
  }
}
