// Joins a room, shows the world that is in it, and steers it. Nothing here is reverie's own protocol:
// tracks, data, text streams, RPC and attributes of LiveKit are all there is (docs/livekit.md).

const { Room, RoomEvent, Track } = window.LivekitClient;
const ARROWS = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };
const LETTERS = { a: "left", d: "right", w: "up", s: "down" };
const SIGNS = { left: "←", right: "→", up: "↑", down: "↓" };

const find = (id) => document.getElementById(id);
const video = document.querySelector("video");
const room = new Room({ publishDefaults: { simulcast: false } }); // a camera is for the world alone
const held = new Set();
let world = null; // the participant with a world's attributes, also before its tracks arrive
let over = ""; // why the last world has ended, kept after its participant has left
let shown = ""; // the last control that was logged as shown

function say(text) {
  const line = document.createElement("li");
  line.textContent = text;
  find("log").prepend(line);
  while (find("log").children.length > 30) find("log").lastChild.remove();
}

function overlay(text) {
  find("overlay").textContent = text;
  find("overlay").hidden = !text;
}

function told(name) {
  return world?.attributes[`world.${name}`] ?? "";
}

function findWorld() {
  const isWorld = (one) => one.attributes["world.status"];
  const all = [...room.remoteParticipants.values()].filter(isWorld);
  return all.find((one) => one.attributes["world.status"] !== "ended") ?? all[0] ?? null;
}

function showStatus() {
  world = findWorld();
  const status = told("status");
  const me = room.localParticipant.identity;
  const driver = told("driver") === me ? "you" : told("driver") || "no one";
  find("status").textContent = world
    ? `${status} · ${told("prompt") || "no prompt"} · ${told("fps")} pictures a second · driver: ${driver}`
    : over ? "There is no world." : "The world has not joined yet.";
  if (world) over = status === "ended" ? `The world has ended: ${told("reason") || "no reason given"}` : "";
  const usable = world && status !== "ended";
  for (const button of document.querySelectorAll("#prompt button, .row button")) button.disabled = !usable;
  showPad(usable ? told("keys").split(",").filter(Boolean) : []);
  find("ask").hidden = !told("turns");
  find("drive").textContent = driver === "you" ? "Let others drive" : "Drive";
  find("camera").hidden = !told("camera");
  find("camera").textContent = room.localParticipant.isCameraEnabled ? "Hide my camera" : "Show my camera";
  const waiting = { queued: "The world waits for a free slot.", recovering: "The world is recovering." }[status] ?? "";
  overlay(over || waiting || (video.srcObject ? "" : "The world is starting."));
}

async function attempt(what, doing) {
  try {
    return await doing();
  } catch (error) {
    say(`${what}: ${error.message}`);
  }
}

function ask(method, payload = {}) {
  return room.localParticipant.performRpc({
    destinationIdentity: world.identity, method: `world.${method}`, payload: JSON.stringify(payload),
  });
}

function call(method, payload) {
  return attempt("refused", () => ask(method, payload));
}

function send(input) {
  if (!world) return;
  const bytes = new TextEncoder().encode(JSON.stringify(input));
  attempt("not sent", () =>
    room.localParticipant.publishData(bytes, { reliable: true, topic: "world.input" }));
}

function keyOf(event) {
  const key = ARROWS[event.key] ?? LETTERS[event.key.toLowerCase()] ?? event.key.toLowerCase();
  return told("keys").split(",").includes(key) ? key : null;
}

function press(key) {
  if (held.has(key)) return;
  held.add(key);
  send({ key, edge: "press" });
  showHeld();
}

function release(key) {
  if (held.delete(key)) send({ key, edge: "release" });
  showHeld();
}

function releaseAll() {
  if (held.size) send({ release_all: true });
  held.clear();
  showHeld();
}

function showHeld() {
  for (const button of find("pad").children) button.ariaPressed = String(held.has(button.value));
}

/** A button for each key that the world takes, for touch and for keyboards without the key. */
function showPad(keys) {
  const pad = find("pad");
  if ([...pad.children].map((button) => button.value).join() === keys.join()) return;
  pad.replaceChildren(...keys.map((key) => {
    const button = Object.assign(document.createElement("button"), { type: "button", value: key });
    button.textContent = SIGNS[key] ?? key;
    button.ariaLabel = key;
    button.addEventListener("pointerdown", (event) => {
      button.setPointerCapture(event.pointerId); // a finger that slides off still lets go here
      press(key);
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      button.addEventListener(end, () => release(key));
    }
    button.addEventListener("mousedown", (event) => event.preventDefault()); // the view keeps the focus
    button.addEventListener("contextmenu", (event) => event.preventDefault()); // a long touch
    return button;
  }));
  showHeld();
}

find("view").addEventListener("keydown", (event) => {
  const key = keyOf(event);
  if (!key || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  press(key);
});
find("view").addEventListener("keyup", (event) => {
  release(keyOf(event));
});
find("view").addEventListener("blur", releaseAll);
window.addEventListener("blur", releaseAll);

room
  .on(RoomEvent.TrackSubscribed, (track, publication) => {
    if (publication.trackName === "world_video") {
      track.attach(video);
      find("view").focus();
    } else if (track.kind === Track.Kind.Audio) {
      document.body.append(track.attach());
    }
    showStatus();
  })
  .on(RoomEvent.TrackUnsubscribed, (track) => {
    for (const element of track.detach()) if (element !== video) element.remove();
    showStatus();
  })
  .on(RoomEvent.ParticipantConnected, showStatus)
  .on(RoomEvent.ParticipantDisconnected, showStatus)
  .on(RoomEvent.ParticipantAttributesChanged, showStatus)
  .on(RoomEvent.LocalTrackPublished, showStatus)
  .on(RoomEvent.LocalTrackUnpublished, showStatus)
  .on(RoomEvent.TrackMuted, showStatus)
  .on(RoomEvent.TrackUnmuted, showStatus)
  .on(RoomEvent.Reconnecting, () => overlay("The connection broke; reconnecting."))
  .on(RoomEvent.Reconnected, showStatus)
  .on(RoomEvent.Disconnected, () => overlay("You have left the room."));

room.registerTextStreamHandler("world.events", async (reader) => {
  for (const line of (await reader.readAll()).split("\n")) {
    const event = JSON.parse(line);
    if (event.type === "text.delta") continue; // it comes as a caption
    if (event.type.startsWith("control.")) { // keys have no tag, and are seen
      const isNew = event.tag && event.control !== shown;
      if (!isNew && !event.unknown_words?.length) continue;
      shown = event.control;
    }
    const what = {
      "world.refused": event.message,
      "world.driver": `driver: ${event.driver ?? "no one"}`,
      "control.applied": `${event.tag ? `"${event.tag}"` : "it"} shows now`,
      "control.superseded": `"${event.tag}" was replaced by a newer one`,
      "session.interrupted": "continues from here",
    };
    const unknown = event.unknown_words?.length ? `; unknown: ${event.unknown_words.join(", ")}` : "";
    say(`${event.by ? `${event.by}: ` : ""}${what[event.type] ?? event.type}${unknown}`);
  }
});

room.registerTextStreamHandler("lk.transcription", async (reader) => {
  let said = "";
  for await (const part of reader) {
    said += part;
    find("caption").textContent = said;
    find("caption").hidden = false;
  }
});

find("join").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button");
  button.disabled = true;
  try {
    const answer = await fetch(`token?${new URLSearchParams(new FormData(event.target))}`);
    const { url, token } = await answer.json();
    await room.connect(url, token);
    event.target.hidden = true;
    showStatus();
    // What changes while a connection is made comes without an event.
    setInterval(() => room.state === "connected" && showStatus(), 1000);
  } catch (error) {
    overlay(`The room cannot be joined: ${error.message}`);
    button.disabled = false;
  }
});

find("prompt").addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = event.target.elements.text;
  const text = field.value.trim();
  if (!text || !world) return;
  const mode = event.submitter === find("ask") ? "turn" : "replace";
  let why = "";
  try {
    await ask("prompt", { text, mode, tag: text.slice(0, 60) });
    if (field.value.trim() === text) field.value = ""; // a refused prompt stays, to be sent again
  } catch (error) {
    why = `Refused: ${error.message}`;
  }
  find("refusal").textContent = why;
  find("refusal").hidden = !why;
});

find("drive").addEventListener("click", () =>
  call("drive", { release: told("driver") === room.localParticipant.identity }));
find("interrupt").addEventListener("click", () => call("interrupt"));
find("back").addEventListener("click", () => call("rewind", { chunks: 6 }));
find("camera").addEventListener("click", async () => {
  const me = room.localParticipant;
  find("camera").disabled = true; // until the browser has the permission
  await attempt("the camera cannot be shown", () => me.setCameraEnabled(!me.isCameraEnabled));
  if (me.isCameraEnabled && told("driver") !== me.identity) say("the world sees the driver's camera");
  showStatus();
});
