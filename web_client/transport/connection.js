// The connection to the server: creates a session, stays attached to it, and reconnects.

import { refusalOfOpening, refusalOfSession } from "./admission.js";
import { BROKEN, backoffMs, closeReasonOf, closeReasonOfFailure } from "./close_reason.js";
import { request, send } from "./requests.js";

/**
 * @typedef {import("./attachment.js").Attachment} Attachment
 * @typedef {import("./close_reason.js").CloseReason} CloseReason
 * @typedef {{model?: string, program?: string, prompt?: string, voice?: boolean}} Opening
 *   what a new session should be
 */

// The attempt that back-off continues from once the server answers, even if the session is gone.
const RENEWAL_ATTEMPT = 1;

export class Connection {
  #tickets;
  #dialer;
  #opening;
  #events;
  /** @type {import("./stored_session.js").StoredTicket | null} */
  #ticket = null;
  /** @type {string | null} which recording runs */
  #recording = null;
  /** @type {Attachment | null} */
  #attachment = null;
  #attempt = 0;
  /** Whether the newest attachment was accepted by the server. */
  #wasOpen = false;
  /** Whether the page polls the server's status until it takes a session. */
  #isWaiting = false;
  /** Whether the server may have lost the session since it was used last. */
  #isDoubtful = true;
  #count = 0;
  #prefix = Math.random().toString(36).slice(2, 8);
  #wake = () => {};

  /**
   * @param {import("./stored_session.js").StoredSession} tickets
   * @param {import("./dialer.js").Dialer} dialer
   * @param {Opening} opening
   * @param {import("./attachment.js").AttachmentEvents} events
   */
  constructor(tickets, dialer, opening, events) {
    this.#tickets = tickets;
    this.#dialer = dialer;
    this.#opening = opening;
    this.#events = events;
  }

  /**
   * Send a command, if there is an open attachment.
   * @param {string} type @param {object} [fields]
   * @returns {string | null} its id, which its answer and its receipt name; null: not sent
   */
  send(type, fields = {}) {
    const id = `${this.#prefix}-${++this.#count}`;
    return this.#attachment?.send({ id, type, ...fields }) ? id : null;
  }

  /** Send bytes along with a command. @param {string} type @param {object} fields @param {Uint8Array} payload */
  sendMedia(type, fields, payload) {
    const id = `${this.#prefix}-${++this.#count}`;
    return this.#attachment?.sendMedia({ id, type, ...fields }, payload) ? id : null;
  }

  /** The open attachment; null while there is none. */
  get attachment() {
    return this.#attachment?.isOpen ? this.#attachment : null;
  }

  /** The session and its token. */
  get ticket() {
    return this.#ticket;
  }

  /** How the session runs, as the server says it; null where it does not. @returns {Promise<any>} */
  async stats() {
    if (this.#ticket === null) return null;
    const { id, token } = this.#ticket;
    return request(`v1/sessions/${id}/stats`, { token }).catch(() => null);
  }

  /** Try now rather than later. */
  retry() {
    this.#attempt = 0;
    this.#wake();
  }

  /**
   * The page is being left, perhaps for the back/forward cache.
   * @param {boolean} isKept whether the browser keeps the page itself
   */
  hangUp(isKept) {
    this.#attachment?.hangUp();
    // A page that cannot find its session again ends it, because it holds a place.
    if (!isKept && !this.#tickets.remembers && this.#ticket !== null) endSession(this.#ticket);
  }

  /** Leave this session for a new one. @param {Opening} [opening] what should be different */
  renew(opening = {}) {
    this.#opening = { ...this.#opening, ...opening };
    if (this.#ticket !== null) this.#end(this.#ticket, this.#recording);
    this.#forget("A new world.");
    this.#attachment?.forsake();
    this.retry();
  }

  /** Attach again, to the same session, as the dialer now has it. */
  reattach() {
    this.#attachment?.leave();
    this.retry();
  }

  /** Stay attached until the page goes. @returns {Promise<never>} */
  async run() {
    this.#ticket = await this.#tickets.recall();
    if (!isLike(this.#ticket, this.#opening)) this.#ticket = null;
    // If that session is gone, the new one begins with the same model and prompt.
    if (this.#ticket !== null) this.#opening = { ...this.#opening, ...this.#ticket.opening };
    for (;;) {
      if (!this.#isWaiting) this.#events.onMessage({ type: "page.connecting" });
      await this.#prepareNext(await this.#once());
    }
  }

  /** @returns {Promise<CloseReason>} how it ended */
  async #once() {
    const onMessage = (/** @type {any} */ message) => this.#onMessage(message);
    let attachment;
    try {
      const refusal = await this.#refusal();
      if (refusal !== null) return refusal;
      if (this.#isWaiting) this.#events.onMessage({ type: "page.connecting" });
      this.#isWaiting = false;
      this.#ticket ??= await this.#create();
      attachment = await this.#dialer.dial(this.#ticket, { ...this.#events, onMessage });
    } catch (error) {
      return closeReasonOfFailure(error);
    }
    this.#attachment = attachment;
    this.#wasOpen = false;
    const code = await attachment.ended;
    this.#dialer.ended(attachment, this.#wasOpen, code);
    if (code === BROKEN && this.#dialer.isAutomatic) return { next: "now", reason: "" };
    return closeReasonOf(code);
  }

  /** Why the server would refuse the next request; null when it would not. */
  async #refusal() {
    if (this.#ticket === null) return refusalOfOpening(this.#opening);
    return this.#isDoubtful ? refusalOfSession(this.#ticket) : null;
  }

  async #create() {
    const { id, token, owner, view } = await request("v1/sessions", { body: this.#opening });
    const ticket = { id, token, owner, model: view.model };
    await this.#tickets.keep(ticket);
    return ticket;
  }

  /** @param {CloseReason} closing */
  async #prepareNext({ next, reason, isBusy = false, nextAction, waitMs, isLoading = false }) {
    this.#isDoubtful = next !== "now";
    if (next === "now") return;
    this.#isWaiting = next === "wait";
    if (next === "wait") {
      this.#events.onMessage({ type: "page.waiting", reason, isLoading });
      await this.#sleep(waitMs ?? 0);
      return;
    }
    if (next === "over") {
      this.#events.onMessage({ type: "page.over", reason, nextAction });
      await this.#sleep(null);
      return;
    }
    if (next === "renew") this.#attempt = Math.min(this.#attempt, RENEWAL_ATTEMPT); // the server answers
    const wait = waitMs ?? backoffMs(this.#attempt++, Math.random());
    const retryAtMs = performance.now() + wait;
    if (next === "renew") this.#forget(reason, true);
    else this.#events.onMessage({ type: "page.lost", reason, isBusy, retryAtMs });
    await this.#sleep(wait);
  }

  /** @param {number | null} waitMs null waits for `retry` or `renew` alone */
  #sleep(waitMs) {
    return new Promise((resolve) => {
      this.#wake = () => resolve(undefined);
      if (waitMs !== null) setTimeout(resolve, waitMs);
    });
  }

  /** @param {string} reason @param {boolean} [isLoss] whether the person did not ask for it */
  #forget(reason, isLoss = false) {
    this.#ticket = null;
    this.#recording = null;
    this.#tickets.drop();
    this.#events.onMessage({ type: "page.new_session", reason, isLoss });
  }

  /**
   * End a session. A running recording is completed before that, and offered.
   * @param {import("./stored_session.js").StoredTicket} ticket @param {string | null} recording
   */
  async #end(ticket, recording) {
    if (recording !== null) {
      try {
        const path = `v1/sessions/${ticket.id}/recordings/${recording}/stop`;
        const made = await request(path, { method: "POST", token: ticket.token });
        if (made.frames === 0) throw new Error("it was still empty");
        this.#events.onMessage({ ...made, type: "page.kept", name: recording, ticket });
      } catch (error) {
        const message = `The recording is lost: ${/** @type {Error} */ (error).message}`;
        this.#events.onMessage({ type: "page.failed", code: "recording", message });
      }
    }
    endSession(ticket);
  }

  #onAttached() {
    this.#attempt = 0;
    this.#wasOpen = true;
    if (this.#attachment === null) return;
    this.#dialer.opened(this.#attachment);
    this.#events.onMessage({ type: "page.transport", transport: this.#attachment.transport });
  }

  /** @param {any} message */
  #onMessage(message) {
    if (message.type === "session.attached") this.#onAttached();
    if (message.view !== undefined) {
      const { model, program, prompt, recording = null } = message.view; // for a session that replaces it
      this.#opening = { ...this.#opening, model, program, prompt };
      this.#tickets.note(this.#opening); // also after a reload
      this.#recording = recording;
    }
    if (message.type !== "artifact.completed") this.#events.onMessage(message);
    else {
      if (message.name === this.#recording) this.#recording = null;
      this.#events.onMessage({ ...message, ticket: this.#ticket }); // so that it can be fetched later
    }
  }
}

/**
 * End a session by HTTP, because the attachment may close before a command gets through.
 * @param {import("./stored_session.js").StoredTicket} ticket
 */
function endSession({ id, token }) {
  const asked = { method: "DELETE", token, keepalive: true };
  send(`v1/sessions/${id}`, asked).catch(() => {}); // it ends after its grace time anyway
}

/**
 * Whether a stored session matches what the page should open, as far as the address says it.
 * @param {import("./stored_session.js").StoredTicket | null} ticket @param {Opening} opening
 */
function isLike(ticket, { model, program }) {
  const isOther = (/** @type {string | undefined} */ wanted, /** @type {string | undefined} */ had) =>
    wanted !== undefined && wanted !== had;
  return !isOther(model, ticket?.model) && !isOther(program, ticket?.opening?.program);
}
