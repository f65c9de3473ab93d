// Movements of axes: added up here, and sent a few times a second.

/** @typedef {import("./bindings.js").Axis} Axis */

const EVERY_MS = 34;
/** Movements in flight that have no receipt yet. More would only wait at a busy server. */
const UNSETTLED = 8;
const DIGITS = 4;

export class AxisPump {
  #send;
  #later;
  /** @type {Map<string, {axis: Axis, amount: number}>} */
  #moved = new Map();
  /** @type {Set<string>} */
  #unsettled = new Set();
  #isResting = false;

  /**
   * @param {(action: Record<string, number>, isFirst: boolean) => string | null} send its id; null when it
   *   was not sent; `isFirst`: no other movement is in flight
   * @param {(act: () => void, ms: number) => void} later
   */
  constructor(send, later) {
    this.#send = send;
    this.#later = later;
  }

  /** @param {Axis} axis @param {number} share of its whole range, -1 to 1 */
  move(axis, share) {
    const amount = (this.#moved.get(axis.name)?.amount ?? 0) + share * (axis.high - axis.low);
    this.#moved.set(axis.name, { axis, amount });
    this.#flush();
  }

  /** A command has its receipt, or was refused. @param {string | null | undefined} id */
  settled(id) {
    if (id != null && this.#unsettled.delete(id)) this.#flush();
  }

  /** Forget movements that were not sent, and those in flight. */
  forget() {
    this.#moved.clear();
    this.#unsettled.clear();
  }

  #flush() {
    if (this.#isResting || this.#moved.size === 0 || this.#unsettled.size >= UNSETTLED) return;
    const moved = [...this.#moved.values()].map(({ axis, amount }) => [axis.name, within(axis, amount)]);
    this.#moved.clear();
    const action = Object.fromEntries(moved.filter(([, amount]) => amount !== 0));
    if (Object.keys(action).length === 0) return;
    const id = this.#send(action, this.#unsettled.size === 0);
    if (id !== null) this.#unsettled.add(id);
    this.#isResting = true;
    this.#later(() => {
      this.#isResting = false;
      this.#flush();
    }, EVERY_MS);
  }
}

/** @param {Axis} axis @param {number} amount @returns {number} what one input may be */
function within({ low, high }, amount) {
  return Math.min(high, Math.max(low, Number(amount.toFixed(DIGITS))));
}
