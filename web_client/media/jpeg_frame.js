// Pictures to be pushed: cropped to the shape that the program takes, and encoded as JPEG.

const QUALITY = 0.85;

/**
 * The part of a picture that fills another shape; both sides are cropped evenly.
 * @param {{width: number, height: number}} from @param {{width: number, height: number}} to
 */
export function cover(from, to) {
  const scale = Math.min(from.width / to.width, from.height / to.height);
  const width = to.width * scale;
  const height = to.height * scale;
  return { x: (from.width - width) / 2, y: (from.height - height) / 2, width, height };
}

export class JpegFrames {
  #canvas = document.createElement("canvas");
  #context = /** @type {CanvasRenderingContext2D} */ (this.#canvas.getContext("2d"));

  /** @param {{width: number, height: number}} size of what the program takes */
  constructor({ width, height }) {
    this.#canvas.width = width;
    this.#canvas.height = height;
  }

  /**
   * @param {CanvasImageSource} picture @param {{width: number, height: number}} size its own
   * @returns {Promise<Uint8Array>} a JPEG
   */
  async pack(picture, size) {
    const { width, height } = this.#canvas;
    const part = cover(size, this.#canvas);
    this.#context.drawImage(picture, part.x, part.y, part.width, part.height, 0, 0, width, height);
    const blob = await new Promise((resolve) => this.#canvas.toBlob(resolve, "image/jpeg", QUALITY));
    return new Uint8Array(await blob.arrayBuffer());
  }
}
