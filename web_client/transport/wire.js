// The binary form of an event: u32 big-endian header length, the event as JSON, then its bytes.

/**
 * @typedef {object} MediaChunk
 * @property {"media.chunk"} type
 * @property {string} stream
 * @property {number} time_us when it was sent, on the server's clock
 * @property {number} pts_us when the picture is due, on the stream's own clock
 * @property {number} duration_us
 * @property {boolean} key whether it decodes without earlier ones
 * @property {number} chunk
 * @property {boolean} last whether it is the last picture of its chunk
 * @property {boolean} discontinuity whether the clock jumped just before it
 * @property {number} dropped pictures that the server left out just before it
 */

const PREFIX_BYTES = 4;
const TEXT = new TextDecoder("utf-8", { fatal: true });

/** A frame that is not what the protocol says; the socket cannot be trusted after it. */
export class WireError extends Error {}

/**
 * Split a binary frame into its event and its payload; the payload is a view, not a copy.
 * @param {ArrayBuffer} buffer
 * @returns {{header: MediaChunk, payload: Uint8Array}}
 * @throws {WireError} when the lengths do not fit or the header is not a JSON object with a type
 */
export function parseBinary(buffer) {
  if (buffer.byteLength < PREFIX_BYTES) throw new WireError("a binary frame without a header");
  const size = new DataView(buffer).getUint32(0, false);
  if (size > buffer.byteLength - PREFIX_BYTES) {
    throw new WireError("a binary frame shorter than its header");
  }
  const text = decodeText(new Uint8Array(buffer, PREFIX_BYTES, size));
  const header = /** @type {MediaChunk} */ (parseText(text));
  return { header, payload: new Uint8Array(buffer, PREFIX_BYTES + size) };
}

/**
 * Join a command that has bytes with them, as the server does with its events.
 * @param {object} header @param {Uint8Array} payload
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function makeBinary(header, payload) {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const frame = new Uint8Array(PREFIX_BYTES + text.length + payload.length);
  new DataView(frame.buffer).setUint32(0, text.length, false);
  frame.set(text, PREFIX_BYTES);
  frame.set(payload, PREFIX_BYTES + text.length);
  return frame;
}

/**
 * Read a JSON event.
 * @param {string} text
 * @returns {{type: string}}
 * @throws {WireError} when it is not a JSON object with a type
 */
export function parseText(text) {
  let event;
  try {
    event = JSON.parse(text);
  } catch {
    throw new WireError("a message that is not JSON");
  }
  if (typeof event?.type !== "string") throw new WireError("a message without a type");
  return event;
}

/** @param {Uint8Array} bytes */
function decodeText(bytes) {
  try {
    return TEXT.decode(bytes);
  } catch {
    throw new WireError("a header that is not UTF-8");
  }
}
