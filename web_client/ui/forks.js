// Forks: a second session that continues from the current picture, in a new tab.

import { refusalOfFork } from "../transport/admission.js";
import { request } from "../transport/requests.js";

export class Forks {
  #connection;
  #tickets;
  #fail;

  /**
   * @param {import("./page.js").Page} page
   * @param {import("../transport/connection.js").Connection} connection
   * @param {import("../transport/stored_session.js").StoredSession} tickets
   * @param {(code: string, message: string) => void} fail
   */
  constructor(page, connection, tickets, fail) {
    this.#connection = connection;
    this.#tickets = tickets;
    this.#fail = fail;
    page.part("fork").addEventListener("click", () => this.#fork());
  }

  async #fork() {
    const { ticket } = this.#connection;
    if (ticket === null) return;
    // Opened before any await, because a browser blocks a tab that does not follow a click at once.
    const tab = open("", "_blank");
    if (tab === null) {
      this.#fail("fork", "The browser blocked the new tab.");
      return;
    }
    try {
      if (!this.#tickets.remembers) throw new Error("this browser stores nothing for this page");
      const { model, owner } = ticket;
      const refusal = await refusalOfFork({ model }, owner);
      if (refusal !== null) throw new Error(refusal);
      const path = `v1/sessions/${ticket.id}/fork`;
      const made = await request(path, { body: {}, token: ticket.token });
      const { id, token, view } = made;
      this.#tickets.bequeath(tab.sessionStorage, { id, token, owner: made.owner, model: view.model });
      tab.opener = null;
      tab.location.replace(location.href);
    } catch (error) {
      tab.close();
      this.#fail("fork", `The world could not be forked: ${error instanceof Error ? error.message : error}`);
    }
  }
}
