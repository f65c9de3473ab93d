// Decoders: encoded pictures in, pictures that a canvas can draw out, in the order they came.

/**
 * @typedef {{ptsUs: number, key: boolean, data: Uint8Array}} Encoded
 * @typedef {(image: VideoFrame | ImageBitmap, ptsUs: number) => void} OnImage the receiver closes it
 * @typedef {object} Decoder
 * @property {(encoded: Encoded) => boolean} decode false when it needs a key frame first
 * @property {() => void} close no picture comes after it
 */

const H264_PROBE = "avc1.42001f";

/**
 * The video codecs to offer over a WebSocket, best first.
 * @param {string | null} forced
 * @returns {Promise<string[]>}
 */
export async function findCodecs(forced) {
  if (forced === "h264" || forced === "jpeg") return [forced];
  if (typeof VideoDecoder === "undefined") return ["jpeg"];
  try {
    const { supported } = await VideoDecoder.isConfigSupported({ codec: H264_PROBE });
    return supported ? ["h264", "jpeg"] : ["jpeg"];
  } catch {
    return ["jpeg"];
  }
}

/**
 * @param {{codec: string, container: string}} media a `media.init`
 * @param {OnImage} onImage
 * @param {(error: Error) => void} onFailure the decoder has failed; another one needs a key frame
 * @returns {Decoder}
 * @throws {Error} when the server chose a codec that was not offered
 */
export function createDecoder(media, onImage, onFailure) {
  if (media.container === "annexb") return new H264Decoder(media.codec, onImage, onFailure);
  if (media.container === "jpeg") return new JpegDecoder(onImage, onFailure);
  throw new Error(`cannot show ${media.codec} in ${media.container}`);
}

/** H.264 access units, decoded by the browser. */
class H264Decoder {
  #decoder;
  #awaitsKey = true;

  /** @param {string} codec @param {OnImage} onImage @param {(error: Error) => void} onFailure */
  constructor(codec, onImage, onFailure) {
    this.#decoder = new VideoDecoder({
      output: (frame) => onImage(frame, frame.timestamp),
      error: onFailure,
    });
    this.#decoder.configure({ codec, optimizeForLatency: true });
  }

  /** @param {Encoded} encoded */
  decode({ ptsUs, key, data }) {
    if (this.#decoder.state === "closed" || (this.#awaitsKey && !key)) return false;
    this.#awaitsKey = false;
    const type = key ? "key" : "delta";
    this.#decoder.decode(new EncodedVideoChunk({ type, timestamp: ptsUs, data }));
    return true;
  }

  close() {
    if (this.#decoder.state !== "closed") this.#decoder.close();
  }
}

/** JPEG pictures. They are decoded in parallel, so each waits for the ones before it. */
class JpegDecoder {
  #order = Promise.resolve();
  #closed = false;
  #onImage;
  #onFailure;

  /** @param {OnImage} onImage @param {(error: Error) => void} onFailure */
  constructor(onImage, onFailure) {
    this.#onImage = onImage;
    this.#onFailure = onFailure;
  }

  /** @param {Encoded} encoded */
  decode({ ptsUs, data }) {
    const decoding = createImageBitmap(new Blob([data], { type: "image/jpeg" }));
    this.#order = this.#order
      .then(() => decoding)
      .then((image) => (this.#closed ? image.close() : this.#onImage(image, ptsUs)))
      .catch((error) => this.#closed || this.#onFailure(error));
    return true;
  }

  close() {
    this.#closed = true;
  }
}
