// The interface of an attachment to a session, over either transport.

/**
 * @typedef {object} Attachment
 * @property {import("./transport_choice.js").Transport} transport
 * @property {Promise<number>} ended a close code; it never rejects
 * @property {boolean} isOpen whether the server has accepted this client
 * @property {(command: {id: string, type: string}) => boolean} send returns whether it was sent
 * @property {(header: object, payload: Uint8Array) => boolean} sendMedia likewise, with bytes
 * @property {() => number} waitingBytes in the send buffer
 * @property {() => Promise<import("./line_stats.js").Counters>} measure the counters so far
 * @property {(code?: number) => void} leave end at once, without waiting for the server
 * @property {() => void} forsake end at once; the session is ended by HTTP, and the attachment with it
 * @property {() => void} notePresented a picture was shown
 * @property {() => void} hangUp the page is being left: no message can be sent any more
 * @property {(kind: "video" | "audio", track: MediaStreamTrack | null) => boolean} feed
 *   returns whether this transport carries tracks
 *
 * @typedef {object} AttachmentEvents
 * @property {(message: any) => void} onMessage
 * @property {(header: import("./wire.js").MediaChunk, payload: Uint8Array | null) => void} onMedia
 *   without a payload the picture comes in a track
 * @property {(track: MediaStreamTrack, receiver: RTCRtpReceiver) => void} onTrack
 * @property {() => boolean} expectsPictures whether silence means a dead connection
 */

/** The protocol version of this page. */
export const PROTOCOL = 1;
