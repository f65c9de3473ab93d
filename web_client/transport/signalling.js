// Signalling of a peer connection, over HTTP.

import { request, send } from "./requests.js";

/** @typedef {{ice_servers: RTCIceServer[], relay_only: boolean}} Ice */

/**
 * Ask for the ICE servers of a session.
 * @param {{id: string, token: string}} ticket @returns {Promise<Ice>}
 */
export function askIce({ id, token }) {
  return request(`v1/ice?session=${id}`, { token });
}

export class Signalling {
  #session;
  #token;
  /** @type {string | null} path of this peer, once the server has answered */
  #peer = null;
  #isOver = false;

  /** @param {{id: string, token: string}} ticket */
  constructor({ id, token }) {
    this.#session = `v1/sessions/${id}/webrtc`;
    this.#token = token;
  }

  /** Whether the server has answered, so that candidates can be sent. */
  get isKnown() {
    return this.#peer !== null;
  }

  /**
   * @param {string} sdp an offer, with or without candidates
   * @returns {Promise<string>} the answer's SDP
   * @throws {import("./requests.js").RefusedError}
   */
  async offer(sdp) {
    const body = { type: "offer", sdp, role: "driver" };
    const answer = await request(this.#session, { body, token: this.#token });
    this.#peer = `${this.#session}/${answer.id}`;
    return answer.sdp;
  }

  /** Restart ICE. @param {string} sdp @returns {Promise<string>} */
  async restart(sdp) {
    const body = { type: "offer", sdp };
    return (await this.#patch(body)).sdp;
  }

  /** @param {RTCIceCandidate[]} found */
  async candidates(found) {
    const candidates = found.map(({ candidate, sdpMid, sdpMLineIndex }) => ({
      candidate,
      sdpMid,
      sdpMLineIndex,
    }));
    await this.#patch({ candidates });
  }

  /** End this peer; also while the page is being left. */
  leave() {
    if (this.#peer === null || this.#isOver) return;
    const asked = { method: "DELETE", token: this.#token, keepalive: true };
    send(this.#peer, asked).catch(() => {}); // the peer may have ended there already
    this.#peer = null;
  }

  /** The server ends this peer, so `leave` has nothing to do. */
  forget() {
    this.#isOver = true;
  }

  /** @param {object} body */
  #patch(body) {
    if (this.#peer === null) throw new Error("the server has not answered the offer");
    return request(this.#peer, { method: "PATCH", body, token: this.#token });
  }
}
