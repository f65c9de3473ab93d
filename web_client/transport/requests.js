// The server's REST interface.

const LIMIT_MS = 15_000;
const NO_CONTENT = 204;

/** The server refused a request with a typed error. */
export class RefusedError extends Error {
  /**
   * @param {number} status
   * @param {{code: string, message: string, retry_after_s?: number | null}} error
   */
  constructor(status, { code, message, retry_after_s }) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterS = retry_after_s ?? null;
    /** Whether the same request may succeed later. */
    this.isPassing = status >= 500 || status === 429;
  }
}

/**
 * @typedef {object} Asked
 * @property {string} [method] GET, or POST with a body
 * @property {object} [body]
 * @property {string} [token] of the session
 * @property {boolean} [keepalive] whether it continues when the page is left
 *
 * @param {string} path relative to the page
 * @param {Asked} [asked]
 * @returns {Promise<any>} the answer; null when it is empty
 * @throws {RefusedError} refused
 * @throws {Error} the server was not reached, was too slow, or it was not this server that answered
 */
export async function request(path, asked = {}) {
  const response = await send(path, asked);
  return response.status === NO_CONTENT ? null : response.json();
}

/**
 * Likewise, for an answer that is not JSON.
 * @param {string} path @param {Asked} [asked]
 * @returns {Promise<Response>}
 */
export async function send(path, { method, body, token, keepalive = false } = {}) {
  /** @type {Record<string, string>} */
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  const response = await fetch(path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    keepalive,
    signal: after(LIMIT_MS),
  });
  if (!response.ok) throw new RefusedError(response.status, (await response.json()).error);
  return response;
}

/** @param {number} ms @returns {AbortSignal} one that aborts after that time, also in older browsers */
export function after(ms) {
  if ("timeout" in AbortSignal) return AbortSignal.timeout(ms);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), ms);
  return controller.signal;
}
