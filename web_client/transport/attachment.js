// What every way to a session looks like, whatever carries it: from the first word to the end.

/**
 * @typedef {object} Attachment
 * @property {import("./transport_choice.js").Transport} transport
 * @property {Promise<number>} ended a close code; it never rejects
 * @property {boolean} isOpen whether the server has let this client in
 * @property {(command: {id: string, type: string}) => boolean} send whether it was sent
 * @property {(header: object, payload: Uint8Array) => boolean} sendMedia likewise, with bytes
 * @property {() => number} waitingBytes what was sent and has not left yet
 * @property {() => Promise<import("./line_stats.js").Counters>} measure what was counted so far
 * @property {(code?: number) => void} leave end now, without waiting for the server
 * @property {() => void} forsake end now; the session is ended in another way, and this with it
 * @property {() => void} notePresented a picture is on the screen
 * @property {() => void} hangUp the page goes: no word can be said any more
 * @property {(kind: "video" | "audio", track: MediaStreamTrack | null) => boolean} feed
 *   whether this way carries tracks by itself
 *
 * @typedef {object} AttachmentEvents
 * @property {(message: any) => void} onMessage
 * @property {(header: import("./wire.js").MediaChunk, payload: Uint8Array | null) => void} onMedia
 *   without a payload the picture comes as part of a track
 * @property {(track: MediaStreamTrack, receiver: RTCRtpReceiver) => void} onTrack
 * @property {() => boolean} expectsPictures whether silence would mean a dead link
 */

/** Version of the vocabulary that this page speaks. */
export const PROTOCOL = 1;
