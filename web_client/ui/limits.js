// What this browser, or the way to this page, does not allow: told to the person, in sentences.

/**
 * @typedef {object} Browser
 * @property {boolean} isSecure whether the page came by https or from this machine
 * @property {boolean} remembers whether it keeps anything for this page
 * @property {boolean} hasDevices whether pages may ask for a camera and a microphone
 */

const HTTPS = "needs https: open this page by an address that begins with https, or as localhost";

/** @param {Browser} browser @returns {string} what to know from the start; empty when nothing */
export function limitsText({ remembers }) {
  if (remembers) return "";
  return "This browser keeps nothing for this page, so a reload begins a new world.";
}

/**
 * @param {"camera" | "microphone"} device @param {Browser} browser
 * @returns {string | null} why it cannot be used; null when it can be asked for
 */
export function deviceLimit(device, { isSecure, hasDevices }) {
  if (hasDevices) return null;
  if (!isSecure) return `The ${device} ${HTTPS}.`;
  return `This browser lets no page use a ${device}.`;
}

/** @param {boolean} isSecure @returns {string} why sound cannot be had over a socket */
export function soundLimit(isSecure) {
  if (!isSecure) return `Sound ${HTTPS}, or WebRTC as the transport.`;
  return "This browser decodes no sound here: choose WebRTC as the transport.";
}
