// One WebRTC attachment, from its offer to its end.

import { AnswerTimes } from "./line_stats.js";
import { BROKEN, codeOfBye, codeOfFailure, LEFT } from "./close_reason.js";
import { Signalling } from "./signalling.js";
import { Watchdog } from "./watchdog.js";
import { makeBinary, parseText, WireError } from "./wire.js";

/** @typedef {import("./attachment.js").Attachment} Attachment */
/** @typedef {import("./attachment.js").AttachmentEvents} AttachmentEvents */

const WATCH_EVERY_MS = 250;
const BAD_FRAME = 4400;

/** @implements {Attachment} */
export class PeerAttachment {
  transport = /** @type {const} */ ("webrtc");
  /** @type {Promise<number>} the close code; it never rejects */
  ended;
  /** Whether the server has accepted this client. */
  isOpen = false;
  #peer;
  #channel;
  #signalling;
  #events;
  /** @type {Record<"video" | "audio", RTCRtpTransceiver>} */
  #lines;
  #end = (/** @type {number} */ _code) => {};
  /** @type {RTCIceCandidate[]} not sent to the server yet */
  #candidates = [];
  #watchdog = new Watchdog(performance.now());
  #pings = 0;
  #pongs = new AnswerTimes();
  #watch;

  /**
   * @param {{id: string, token: string}} ticket
   * @param {import("./signalling.js").Ice} ice
   * @param {string | null} codec to ask for first
   * @param {AttachmentEvents} events
   */
  constructor(ticket, ice, codec, events) {
    this.#events = events;
    this.#signalling = new Signalling(ticket);
    this.ended = new Promise((resolve) => (this.#end = resolve));
    const peer = new RTCPeerConnection({
      iceServers: ice.ice_servers,
      iceTransportPolicy: ice.relay_only ? "relay" : "all",
      bundlePolicy: "max-bundle",
    });
    this.#peer = peer;
    // `sendrecv` from the start, so that a camera needs no new offer later.
    this.#lines = {
      video: peer.addTransceiver("video", { direction: "sendrecv" }),
      audio: peer.addTransceiver("audio", { direction: "sendrecv" }),
    };
    preferCodec(this.#lines.video, codec);
    this.#channel = peer.createDataChannel("events", { ordered: true });
    this.#channel.binaryType = "arraybuffer";
    this.#channel.onmessage = ({ data }) => this.#onData(data);
    this.#channel.onclose = () => this.leave(BROKEN);
    peer.ontrack = ({ track, receiver }) => this.#onTrack(track, receiver);
    peer.onicecandidate = ({ candidate }) => this.#onCandidate(candidate);
    peer.onnegotiationneeded = () => {
      // The first event belongs to the offer that is being sent.
      if (this.#signalling.isKnown) this.#restart().catch(() => {}); // the watchdog ends it then
    };
    peer.onconnectionstatechange = () => {
      if (peer.connectionState === "failed") this.leave(BROKEN);
    };
    this.#watch = setInterval(() => this.#onWatch(), WATCH_EVERY_MS);
    this.#open().catch((error) => this.leave(codeOfFailure(error)));
  }

  /** @param {{id: string, type: string}} command @returns {boolean} whether it was sent */
  send(command) {
    if (!this.isOpen || this.#channel.readyState !== "open") return false;
    this.#channel.send(JSON.stringify(command));
    return true;
  }

  /** @param {object} header @param {Uint8Array} payload @returns {boolean} whether it was sent */
  sendMedia(header, payload) {
    if (!this.isOpen || this.#channel.readyState !== "open") return false;
    const message = makeBinary(header, payload);
    if (message.length > (this.#peer.sctp?.maxMessageSize ?? 0)) return false;
    this.#channel.send(message);
    return true;
  }

  waitingBytes() {
    return this.#channel.bufferedAmount;
  }

  async measure() {
    const reports = [...(await this.#peer.getStats()).values()];
    return countersOf(reports, this.#pongs.shortestMs(performance.now()));
  }

  /** @param {"video" | "audio"} kind @param {MediaStreamTrack | null} track */
  feed(kind, track) {
    this.#lines[kind].sender.replaceTrack(track).catch(() => {}); // the track ends with the peer
    return true;
  }

  notePresented() {
    this.#watchdog.presented();
  }

  /** The page is being left: tell the server, which would notice after half a minute. */
  hangUp() {
    this.#signalling.leave();
    this.#peer.close();
  }

  /** End at once, without waiting for the server. */
  leave(code = LEFT) {
    clearInterval(this.#watch);
    this.isOpen = false;
    this.#channel.onmessage = null;
    this.#channel.onclose = null;
    this.#peer.onnegotiationneeded = null;
    this.#peer.onconnectionstatechange = null;
    this.#signalling.leave();
    this.#peer.close();
    this.#end(code);
  }

  /** The peer ends with its session; a request to leave it would be refused. */
  forsake() {
    this.#signalling.forget();
    this.leave();
  }

  async #open() {
    // The offer has no candidates: the browser checks the server's, and the server learns its address.
    await this.#peer.setLocalDescription();
    const sdp = await this.#signalling.offer(this.#peer.localDescription?.sdp ?? "");
    if (this.#peer.signalingState === "closed") {
      this.#signalling.leave(); // it was ended while it waited
      return;
    }
    await this.#peer.setRemoteDescription({ type: "answer", sdp });
    this.#tellCandidates();
  }

  async #restart() {
    await this.#peer.setLocalDescription();
    const sdp = await this.#signalling.restart(this.#peer.localDescription?.sdp ?? "");
    await this.#peer.setRemoteDescription({ type: "answer", sdp });
  }

  /** @param {RTCIceCandidate | null} candidate */
  #onCandidate(candidate) {
    // The server cannot resolve mDNS names.
    if (candidate === null || candidate.candidate === "") return;
    if (candidate.candidate.includes(".local")) return;
    this.#candidates.push(candidate);
    this.#tellCandidates();
  }

  #tellCandidates() {
    if (!this.#signalling.isKnown || this.#candidates.length === 0) return;
    // The server finds addresses by itself as well; the watchdog ends a connection that fails.
    this.#signalling.candidates(this.#candidates.splice(0)).catch(() => {});
  }

  /** @param {MediaStreamTrack} track @param {RTCRtpReceiver} receiver */
  #onTrack(track, receiver) {
    if ("jitterBufferTarget" in receiver && track.kind === "video") receiver.jitterBufferTarget = 0;
    this.#events.onTrack(track, receiver);
  }

  /** @param {string} data */
  #onData(data) {
    this.#watchdog.heard(performance.now());
    try {
      this.#onMessage(parseText(data));
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.leave(BAD_FRAME);
    }
  }

  /** @param {any} message */
  #onMessage(message) {
    switch (message.type) {
      case "pong":
        this.#pongs.answered(String(message.n), performance.now());
        break;
      case "bye":
        this.#signalling.forget();
        this.leave(codeOfBye(message));
        break;
      case "media.chunk":
        this.#onChunk(message);
        break;
      case "session.attached":
        this.isOpen = true;
      // falls through
      default:
        this.#events.onMessage(message);
    }
  }

  /** @param {any} chunk whose picture comes in the track */
  #onChunk(chunk) {
    if (chunk.rtp_timestamp != null) this.#watchdog.sent(performance.now());
    this.#events.onMedia(chunk, null);
  }

  #onWatch() {
    if (!this.#events.expectsPictures()) this.#watchdog.presented();
    const isCut = this.#peer.iceConnectionState === "disconnected";
    for (const duty of this.#watchdog.duties(performance.now(), { isOpen: this.isOpen, isCut })) {
      if (duty === "dead") this.leave(BROKEN);
      else if (duty === "restart") this.#peer.restartIce();
      else if (duty === "ask") this.send({ id: "no-picture", type: "request_key_frame" });
      else if (this.#channel.readyState === "open") {
        this.#pongs.sent(String(++this.#pings), performance.now());
        this.#channel.send(JSON.stringify({ type: "ping", n: this.#pings }));
      }
    }
  }
}

/**
 * @param {any[]} reports of `RTCPeerConnection.getStats` @param {number | null} pongMs
 * @returns {import("./line_stats.js").Counters}
 */
export function countersOf(reports, pongMs) {
  const transport = reports.find(({ type }) => type === "transport");
  const pair = reports.find(({ type, id, nominated, state }) => {
    if (type !== "candidate-pair") return false;
    const selected = transport?.selectedCandidatePairId;
    return selected ? id === selected : nominated && state === "succeeded";
  });
  const inbound = reports.filter(({ type }) => type === "inbound-rtp");
  const video = inbound.find(({ kind }) => kind === "video");
  const roundTripS = pair?.currentRoundTripTime;
  return {
    roundTripMs: roundTripS === undefined ? pongMs : roundTripS * 1000,
    jitterMs: video?.jitter === undefined ? null : video.jitter * 1000,
    bytes: pair?.bytesReceived ?? sumOf(inbound, "bytesReceived"),
    packets: video === undefined ? null : sumOf(inbound, "packetsReceived"),
    lost: video === undefined ? null : sumOf(inbound, "packetsLost"),
    bufferedS: video?.jitterBufferDelay ?? null,
    buffered: video?.jitterBufferEmittedCount ?? 0,
  };
}

/** @param {any[]} reports @param {string} field */
function sumOf(reports, field) {
  return reports.reduce((sum, report) => sum + (report[field] ?? 0), 0);
}

/**
 * Prefer a codec; the others stay in the offer.
 * @param {RTCRtpTransceiver} line @param {string | null} codec such as `h264`
 */
function preferCodec(line, codec) {
  if (!("setCodecPreferences" in line)) return;
  const known = RTCRtpReceiver.getCapabilities?.("video")?.codecs ?? [];
  const rank = (/** @type {{mimeType: string, sdpFmtpLine?: string}} */ { mimeType, sdpFmtpLine }) => {
    const name = mimeType.replace("video/", "").toLowerCase();
    // The server sends packets of mode 1 only.
    if (name === "h264" && !sdpFmtpLine?.includes("packetization-mode=1")) return 3;
    if (name === codec) return 0;
    return { h264: 1, vp8: 2 }[name] ?? 4;
  };
  const ranked = known.map((each, at) => ({ each, at }));
  ranked.sort((a, b) => rank(a.each) - rank(b.each) || a.at - b.at);
  if (ranked.length > 0) line.setCodecPreferences(ranked.map(({ each }) => each));
}
