// Watches pictures at the far end of a line, and presses a key: the server by the page's own
// attachments and screens, and bare loops by the least code. `readback.js` reads the pictures.

const imported = (name) => import(new URL(`/static/${name}`, location.origin).href);
const [{ SocketAttachment }, { PeerAttachment }, { Screen }, { PeerScreen }, { request }] =
  await Promise.all([
    imported("transport/socket_attachment.js"),
    imported("transport/peer_attachment.js"),
    imported("media/screen.js"),
    imported("media/peer_screen.js"),
    imported("transport/requests.js"),
  ]);

const SIDE_PX = 256;
/** The next change of the key comes so long after the last one was seen, and up to twice that. */
const PAUSE_MS = 150;
/** A turn begins with the first picture, and by then at the latest. */
const FIRST_MS = 20_000;
/** A connection that ended is tried again after this, as the page does. */
const REDIAL_MS = 500;
/** A change that was not seen by then never will be. */
const GIVE_UP_MS = 5000;

/** Keeps what is shown and when, and in the end presses the key. */
class Watch {
  /** @type {[number, number][]} when each picture was shown, and its age, in ms */
  shown = [];
  /** @type {number[]} how long each change of the key took to the picture that shows it */
  commands = [];
  unseen = 0;
  press = (/** @type {boolean} */ _down) => {};
  /** Fulfilled with the time from the beginning to the first picture, in ms. @type {Promise<number>} */
  first;
  #isShown = (/** @type {number} */ _ms) => {};
  #begunMs = performance.now();
  #offset;
  #last = null;
  #down = false;
  #sentAtMs = null;
  #timer = 0;

  constructor(offset) {
    this.#offset = offset;
    this.first = new Promise((resolve) => (this.#isShown = resolve));
  }

  /** @param {CanvasImageSource} source that has a picture from now on */
  show(source) {
    const units = bench.read(source);
    if (units === null || units === this.#last) return; // the same one again is not another picture
    this.#last = units;
    const atMs = performance.now();
    this.#isShown(atMs - this.#begunMs);
    this.shown.push([atMs, bench.ageOf(units, this.#offset)]);
    if (this.#sentAtMs === null || bench.isMarked() !== this.#down) return;
    this.commands.push(atMs - this.#sentAtMs);
    this.#rest();
  }

  begin() {
    this.#change();
  }

  end() {
    clearTimeout(this.#timer);
    this.#sentAtMs = null;
  }

  #rest() {
    clearTimeout(this.#timer);
    this.#sentAtMs = null;
    this.#timer = setTimeout(() => this.#change(), PAUSE_MS * (1 + Math.random()));
  }

  #change() {
    this.#down = !this.#down;
    this.#sentAtMs = performance.now();
    this.press(this.#down);
    this.#timer = setTimeout(() => {
      this.unseen++;
      this.#rest();
    }, GIVE_UP_MS);
  }
}

const sleep = (/** @type {number} */ seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

/** Let it show a picture and settle, watch, then watch with keys; return what was seen. */
async function watched(watch, { settle, seconds }) {
  const firstMs = await Promise.race([watch.first, sleep(FIRST_MS / 1000).then(() => null)]);
  await sleep(settle);
  const quietMs = performance.now();
  await sleep(seconds);
  const keysMs = performance.now();
  watch.begin();
  await sleep(seconds);
  const endMs = performance.now();
  watch.end();
  const { shown, commands, unseen } = watch;
  return { firstMs, shown, commands, unseen, quietMs, keysMs, endMs };
}

/** Watch the server as the page does. */
async function ours(options) {
  const { transport, model, offset, act } = options;
  const watch = new Watch(offset);
  const canvas = Object.assign(document.createElement("canvas"), { width: SIDE_PX, height: SIDE_PX });
  const video = Object.assign(document.createElement("video"), { muted: true });
  document.body.append(canvas, video);
  let said = 0;
  let playhead = null;
  const send = (type, fields = {}) => attachment.send({ type, id: `b${said++}`, ...fields });
  const screenEvents = {
    onDrawn() {
      attachment.notePresented();
      watch.show(canvas);
    },
    onSeen(chunk, ptsUs, waitedMs = null) {
      playhead = { chunk, pts_us: ptsUs };
      if (waitedMs !== null) playhead.waited_us = Math.round(waitedMs * 1000);
      send("playhead", playhead);
    },
    onShown() {},
    onSkipped() {},
    onNeedKey: () => send("request_key_frame"),
    onFailure(error) {
      throw error;
    },
  };
  const isPeer = transport === "webrtc";
  const screen = isPeer ? new PeerScreen(video, canvas, screenEvents) : new Screen(canvas, screenEvents);
  const events = {
    onMessage(message) {
      if (message.type === "media.init") screen.init(message);
      if (message.type === "session.interrupted") {
        screen.dropAfter(message.reason === "act" ? message.chunk : -1, message.next_us);
      }
    },
    onMedia: (header, payload) => screen.push(header, payload),
    onTrack: (track) => track.kind === "video" && screen.play(track),
    expectsPictures: () => true,
  };
  watch.press = (down) => {
    const edge = down ? "press" : "release";
    // What was seen last is not taken back.
    if (act === "now" && playhead !== null) send("playhead", playhead);
    send("push_action", { action: { move: "mark" }, edge, act });
  };
  const ticket = await request("v1/sessions", { body: { model, seed: 0 } });
  let isOver = false;
  let attachment = null;
  const dial = () => {
    if (isOver) return;
    attachment = isPeer
      ? new PeerAttachment(ticket, { ice_servers: [], relay_only: false }, "vp8", events)
      : new SocketAttachment(ticket, ["h264"], events);
    attachment.ended.then(() => {
      if (isOver) return;
      screen.close();
      setTimeout(dial, REDIAL_MS);
    });
  };
  dial();
  try {
    return await watched(watch, options);
  } finally {
    isOver = true;
    attachment.forsake();
    screen.close();
    canvas.remove();
    video.remove();
    await request(`v1/sessions/${ticket.id}`, { method: "DELETE", token: ticket.token });
  }
}

/** Watch a bare loop through a socket. */
async function bareSocket(url, options) {
  const watch = new Watch(options.offset);
  const decoder = new VideoDecoder({
    output(frame) {
      watch.show(frame);
      frame.close();
    },
    error() {},
  });
  decoder.configure({ codec: "avc1.42c01f", optimizeForLatency: true });
  const socket = await openSocket(url);
  let count = 0;
  socket.onmessage = ({ data }) => {
    const bytes = new Uint8Array(data);
    const type = bytes[0] === 1 ? "key" : "delta";
    decoder.decode(new EncodedVideoChunk({ type, timestamp: ++count, data: bytes.subarray(1) }));
  };
  watch.press = (down) => socket.send(down ? "1" : "0");
  const found = await watched(watch, options);
  socket.close();
  decoder.close();
  return found;
}

/** Watch a bare loop through a peer connection. */
async function bareRtc(url, options) {
  const watch = new Watch(options.offset);
  const peer = new RTCPeerConnection();
  const transceiver = peer.addTransceiver("video", { direction: "recvonly" });
  const codecs = RTCRtpReceiver.getCapabilities("video").codecs;
  const wanted = ["video/vp8", "video/rtx"];
  transceiver.setCodecPreferences(codecs.filter((each) => wanted.includes(each.mimeType.toLowerCase())));
  const video = Object.assign(document.createElement("video"), { muted: true, autoplay: true });
  document.body.append(video);
  peer.ontrack = ({ track, receiver }) => {
    if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0; // as the page does
    video.srcObject = new MediaStream([track]);
  };
  const onFrame = () => {
    watch.show(video);
    video.requestVideoFrameCallback(onFrame);
  };
  video.requestVideoFrameCallback(onFrame);
  const channel = peer.createDataChannel("keys");
  watch.press = (down) => {
    if (channel.readyState === "open") channel.send(down ? "1" : "0");
  };
  const socket = await openSocket(url);
  await peer.setLocalDescription();
  const answer = new Promise((resolve) => (socket.onmessage = ({ data }) => resolve(data)));
  socket.send(peer.localDescription.sdp);
  await peer.setRemoteDescription({ type: "answer", sdp: await answer });
  const found = await watched(watch, options);
  socket.close();
  peer.close();
  video.remove();
  return found;
}

function openSocket(url) {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  return new Promise((resolve, reject) => {
    socket.onopen = () => resolve(socket);
    socket.onerror = () => reject(new Error(`${url} cannot be reached`));
  });
}

function bare(options) {
  const { transport, model, bareUrl } = options;
  const url = `${bareUrl}/${model}/${transport}`;
  return transport === "webrtc" ? bareRtc(url, options) : bareSocket(url, options);
}

globalThis.overLine = { ours, bare };
