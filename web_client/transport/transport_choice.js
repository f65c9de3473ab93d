// The transport of the next attachment, as a pure function of how earlier ones ended.
// Automatic tries WebRTC first, and WebSocket when WebRTC does not get through.

/**
 * @typedef {"webrtc" | "websocket"} Transport
 * @typedef {"auto" | Transport} Choice of the person
 * @typedef {object} Route
 * @property {Choice} choice
 * @property {"untried" | "suspect" | "failed"} webrtc
 *   suspect: it broke, but the server may be down; failed: it broke and WebSocket gets through
 */

/** @type {readonly Choice[]} */
export const CHOICES = ["auto", "webrtc", "websocket"];

const KEY = "reverie.transport";

/** @param {Choice} choice @returns {Route} */
export function newTransportChoice(choice) {
  return { choice, webrtc: "untried" };
}

/** @param {Route} route @returns {Transport} */
export function nextTransport({ choice, webrtc }) {
  if (choice !== "auto") return choice;
  return webrtc === "untried" ? "webrtc" : "websocket";
}

/**
 * An attachment has ended or failed.
 * @param {Route} route @param {Transport} transport
 * @param {{wasOpen: boolean, isBroken: boolean}} end
 *   isBroken: no media or no message got through, and the server gave no reason
 * @returns {Route}
 */
export function ended(route, transport, { wasOpen, isBroken }) {
  if (transport === "webrtc") return isBroken ? { ...route, webrtc: "suspect" } : route;
  // WebSocket fails as well, so WebRTC is not the cause.
  const isAway = route.webrtc === "suspect" && !wasOpen;
  return isAway ? { ...route, webrtc: "untried" } : route;
}

/** An attachment is open. @param {Route} route @param {Transport} transport @returns {Route} */
export function opened(route, transport) {
  const isFailed = transport === "websocket" && route.webrtc === "suspect";
  return isFailed ? { ...route, webrtc: "failed" } : route;
}

/** @param {string | null} asked by the address @param {import("./storage.js").Keeps} storage @returns {Choice} */
export function recallChoice(asked, storage) {
  for (const name of [asked, storage.getItem(KEY)]) {
    const found = CHOICES.find((choice) => choice === name);
    if (found !== undefined) return found;
  }
  return "auto";
}

/** @param {Choice} choice @param {import("./storage.js").Keeps} storage */
export function keepChoice(choice, storage) {
  storage.setItem(KEY, choice);
}
