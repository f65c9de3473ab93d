// The server's REST interface.

const LIMIT_MS = 15_000;

/** The server answered with an error of its own. */
export class RefusedError extends Error {
  /**
   * @param {number} status
   * @param {{code: string, message: string, retry_after_s?: number | null}} error
   */
  constructor(status, { code, message, retry_after_s }) {
    super(message);
    this.code = code;
    this.retryAfterS = retry_after_s ?? null;
    /** Whether the same request may succeed later. */
    this.isPassing = status >= 500 || status === 429;
  }
}

/**
 * @param {string} path relative to the page
 * @param {object} [body] makes it a POST
 * @returns {Promise<any>}
 * @throws {RefusedError} refused
 * @throws {Error} not reached, not in time, or not answered by this server
 */
export async function request(path, body) {
  const response = await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers: body === undefined ? {} : { "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(LIMIT_MS),
  });
  const answer = await response.json();
  if (!response.ok) throw new RefusedError(response.status, answer.error);
  return answer;
}
