// How much of what was pushed may be on its way: the server answers what it has taken in.

/** Holds back a sender that is faster than the line or the server. */
export class SendWindow {
  #limit;
  #limitBytes;
  /** @type {Set<string>} */
  #unanswered = new Set();
  /** @type {(() => void)[]} */
  #waiting = [];

  /** @param {number} limit pushes without an answer @param {number} limitBytes that have not left */
  constructor(limit, limitBytes) {
    this.#limit = limit;
    this.#limitBytes = limitBytes;
  }

  /** @param {number} waitingBytes what was sent and has not left yet */
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

  /** Another line: what was on its way is lost. */
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
