// What this browser or this page's address does not allow, in sentences for people.

/**
 * @typedef {object} Browser
 * @property {boolean} isSecure whether the page was loaded by https or from this machine
 * @property {boolean} remembers whether it stores data for this page
 * @property {boolean} hasDevices whether pages may ask for a camera and a microphone
 */

const HTTPS = "needs https: open this page by an address that begins with https, or as localhost";

/** @param {Browser} browser @returns {string} what to know from the start; empty when there is nothing */
export function limitsText({ remembers }) {
  if (remembers) return "";
  return "This browser stores nothing for this page, so a reload begins a new world.";
}

/**
 * @param {"camera" | "microphone"} device @param {Browser} browser
 * @returns {string | null} why it cannot be used; null when the page may ask for it
 */
export function deviceLimit(device, { isSecure, hasDevices }) {
  if (hasDevices) return null;
  if (!isSecure) return `The ${device} ${HTTPS}.`;
  return `This browser does not let pages use a ${device}.`;
}

/** @param {boolean} isSecure @returns {string} why there is no sound over a WebSocket */
export function soundLimit(isSecure) {
  if (!isSecure) return `Sound ${HTTPS}, or WebRTC as the transport.`;
  return "This browser cannot decode sound over WebSocket: choose WebRTC as the transport.";
}
