// Makes attachments over the transport that is to be used next.

import { BROKEN } from "./close_reason.js";
import { PeerAttachment } from "./peer_attachment.js";
import { RefusedError } from "./requests.js";
import { ended, newTransportChoice, nextTransport, opened } from "./transport_choice.js";
import { askIce } from "./signalling.js";
import { SocketAttachment } from "./socket_attachment.js";

/**
 * @typedef {import("./attachment.js").Attachment} Attachment
 * @typedef {import("./attachment.js").AttachmentEvents} AttachmentEvents
 * @typedef {import("./transport_choice.js").Choice} Choice
 */

export class Dialer {
  #route = newTransportChoice("auto");
  #codecs;
  #firstCodec;

  /**
   * @param {Choice} choice
   * @param {string[]} codecs of pictures that a WebSocket can carry here, best first
   * @param {string | null} firstCodec that a peer connection should prefer
   */
  constructor(choice, codecs, firstCodec) {
    this.choose(choice);
    this.#codecs = codecs;
    this.#firstCodec = firstCodec;
  }

  /** Use this transport from the next attachment on, whatever failed before. @param {Choice} choice */
  choose(choice) {
    this.#route = newTransportChoice(canPeer() ? choice : "websocket");
  }

  /** @param {string[]} codecs */
  useCodecs(codecs) {
    this.#codecs = codecs;
  }

  /** Whether another transport takes over when this one breaks. */
  get isAutomatic() {
    return this.#route.choice === "auto";
  }

  /**
   * @param {{id: string, token: string}} ticket @param {AttachmentEvents} events
   * @returns {Promise<Attachment>}
   * @throws {Error} the server is not reached
   */
  async dial(ticket, events) {
    if (nextTransport(this.#route) === "webrtc") {
      const ice = await this.#askIce(ticket);
      const peer = ice === null ? null : this.#peerTo(ticket, ice, events);
      if (peer !== null) return peer;
    }
    const sound = typeof AudioDecoder === "undefined" ? [] : ["opus"];
    return new SocketAttachment(ticket, [...this.#codecs, ...sound], events);
  }

  /**
   * @param {{id: string, token: string}} ticket @param {import("./signalling.js").Ice} ice
   * @param {AttachmentEvents} events
   * @returns {PeerAttachment | null} null where the browser refuses to make one
   */
  #peerTo(ticket, ice, events) {
    try {
      return new PeerAttachment(ticket, ice, this.#firstCodec, events);
    } catch {
      this.choose("websocket");
      return null;
    }
  }

  /** @param {Attachment} attachment it is open */
  opened(attachment) {
    this.#route = opened(this.#route, attachment.transport);
  }

  /** @param {Attachment} attachment @param {boolean} wasOpen @param {number} code */
  ended(attachment, wasOpen, code) {
    const isBroken = code === BROKEN;
    this.#route = ended(this.#route, attachment.transport, { wasOpen, isBroken });
  }

  /**
   * @param {{id: string, token: string}} ticket
   * @returns {Promise<import("./signalling.js").Ice | null>} null: try a WebSocket, which is told why
   */
  async #askIce(ticket) {
    try {
      return await askIce(ticket);
    } catch (error) {
      if (!(error instanceof RefusedError) || error.isPassing) throw error;
      if (error.code === "not_found") this.choose("websocket"); // this server has no WebRTC
      return null;
    }
  }
}

/** Whether this browser has peer connections and reports presented frames. */
function canPeer() {
  if (typeof RTCPeerConnection === "undefined" || typeof MediaStream === "undefined") return false;
  return "requestVideoFrameCallback" in HTMLVideoElement.prototype;
}
