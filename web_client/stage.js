// The world's frame on the page: how large the picture is, and the light it throws around itself.

// Whole multiples of a pixel are crisp. When they waste more room than this, fill the room instead.
const LEAST_FILL = 0.85;
const GLOW_EVERY_MS = 700;

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

export class Stage {
  #stage;
  #frame;
  #picture;
  #glow;
  #litAtMs = -Infinity;

  /**
   * @param {HTMLElement} stage @param {HTMLElement} frame
   * @param {HTMLCanvasElement} picture @param {HTMLCanvasElement} glow
   */
  constructor(stage, frame, picture, glow) {
    this.#stage = stage;
    this.#frame = frame;
    this.#picture = picture;
    this.#glow = /** @type {CanvasRenderingContext2D} */ (glow.getContext("2d"));
    // In the next frame, for the page may take its height from the picture.
    new ResizeObserver(() => requestAnimationFrame(() => this.resize())).observe(stage);
  }

  /** Fit the picture to its room anew. */
  resize() {
    const { clientWidth, clientHeight } = this.#stage;
    const stacked = getComputedStyle(this.#stage).flexGrow === "0"; // then its height follows ours
    const room = { width: clientWidth, height: stacked ? innerHeight * 0.7 : clientHeight };
    const { width, height } = fit(this.#picture, room, devicePixelRatio);
    this.#frame.style.width = `${width}px`;
    this.#frame.style.height = `${height}px`;
  }

  /** Take up the colours of the picture that was just drawn, now and then. @param {number} nowMs */
  light(nowMs) {
    if (nowMs - this.#litAtMs < GLOW_EVERY_MS) return;
    this.#litAtMs = nowMs;
    this.#glow.drawImage(this.#picture, 0, 0, 8, 8);
    this.#stage.dataset.lit = "true";
  }
}
