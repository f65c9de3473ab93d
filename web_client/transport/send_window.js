// How many pushes may be in flight: the server answers each once it has taken it in.

/** Holds back a sender that is faster than the line or the server. */
export class SendWindow {
  #limit;
  #limitBytes;
  /** @type {Set<string>} */
  #unanswered = new Set();
  /** @type {(() => void)[]} */
  #waiting = [];

  /** @param {number} limit unanswered pushes @param {number} limitBytes in the send buffer */
  constructor(limit, limitBytes) {
    this.#limit = limit;
    this.#limitBytes = limitBytes;
  }

  /** @param {number} waitingBytes in the send buffer */
  hasRoom(waitingBytes) {
    return this.#unanswered.size < this.#limit && waitingBytes <= this.#limitBytes;
  }

  /** @param {string} id */
  sent(id) {
    this.#unanswered.add(id);
  }

  /** @param {string | null | undefined} id of any command @returns {boolean} whether it was one of these */
  answered(id) {
    const isOurs = id != null && this.#unanswered.delete(id);
    if (isOurs) this.#wake();
    return isOurs;
  }

  /** Another attachment: pushes in flight are lost. */
  clear() {
    this.#unanswered.clear();
    this.#wake();
  }

  /** @returns {Promise<void>} when the next answer comes */
  next() {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake() {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
