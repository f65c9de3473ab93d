// The status line, from the view.

/** @typedef {import("../state.js").View} View */
/** @typedef {"wait" | "live" | "paused" | "away" | "over"} Tone */

const BY_STATE = {
  active: /** @type {const} */ (["live", "Live"]),
  paused: /** @type {const} */ (["paused", "Paused"]),
  created: /** @type {const} */ (["wait", "Starting"]),
  queued: /** @type {const} */ (["wait", "Waiting for a free place"]),
  detached: /** @type {const} */ (["wait", "Joining"]),
  failed: /** @type {const} */ (["over", "The world failed"]),
  closed: /** @type {const} */ (["over", "The world has ended"]),
};

/**
 * @param {View} view
 * @param {number} nowMs
 * @returns {{tone: Tone, text: string}}
 */
export function statusOf(view, nowMs) {
  switch (view.link) {
    case "connecting":
      if (view.notice !== "") return { tone: "wait", text: "Old world lost, starting a new one" };
      if (view.reason === "") return { tone: "wait", text: "Connecting" };
      return { tone: view.isBusy ? "wait" : "away", text: "Reconnecting" };
    case "waiting":
      return { tone: "wait", text: view.isLoading ? "Loading the model" : "Waiting for the server" };
    case "lost": {
      const seconds = Math.max(1, Math.ceil((view.retryAtMs - nowMs) / 1000));
      if (view.isBusy) return { tone: "wait", text: `Trying again in ${seconds} s` };
      return { tone: "away", text: `Server not reached, trying again in ${seconds} s` };
    }
    case "over":
      return { tone: "over", text: view.reason };
    case "open":
      return openStatus(view);
  }
}

/** @param {View} view @returns {{tone: Tone, text: string}} */
function openStatus(view) {
  if (view.recovering) return { tone: "wait", text: "Bringing the world back" };
  if (view.queued !== null) return { tone: "wait", text: `Waiting in line: number ${view.queued}` };
  const [tone, text] = BY_STATE[view.session.state];
  const place = view.notice === "" ? text : `${text}, in a new world`;
  return { tone, text: tone === "live" ? place + shortfallOf(view.session.speed) : place };
}

/**
 * @param {{makes_hz: number, declared_hz: number, keeps_rate: boolean} | null | undefined} speed
 * @returns {string} what is said of a server's machine that is too slow for the model
 */
function shortfallOf(speed) {
  if (!speed || speed.keeps_rate) return "";
  const made = speed.makes_hz < 1 ? speed.makes_hz.toFixed(1) : Math.floor(speed.makes_hz);
  return `, makes ${made} of ${speed.declared_hz} pictures a second here`;
}
