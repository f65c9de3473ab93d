// Reads the time from pictures, in the same way for each sender: see time_code.py.

const CELL = 32;
const COLUMNS = 8;
const ROWS = 5;
const WRAP = 2 ** 32;

const canvas = new OffscreenCanvas(256, 256);
const context = canvas.getContext("2d", { willReadFrequently: true });

/** @returns {number} tenths of a millisecond by this page's clock */
const now = () => (performance.timeOrigin + performance.now()) * 10;

/** Draw a picture, read its pixels, and return its time; null when it says no time. */
function read(source) {
  context.drawImage(source, 0, 0);
  const pixels = context.getImageData(0, 0, 256, CELL * ROWS).data;
  let units = 0;
  let check = 0;
  for (let bit = 0; bit < ROWS * COLUMNS; bit++) {
    const x = CELL * (bit % COLUMNS) + CELL / 2;
    const y = CELL * Math.floor(bit / COLUMNS) + CELL / 2;
    const on = pixels[4 * (y * 256 + x) + 1] > 128 ? 1 : 0;
    if (bit < 32) units += on * 2 ** bit;
    else check += on * 2 ** (bit - 32);
  }
  const sum = [0, 8, 16, 24].reduce((all, shift) => all + ((units / 2 ** shift) & 255), 0) % 256;
  return sum === check ? units : null;
}

/** Return how old a picture of this time is now, in ms. */
const ageOf = (units, offset) => ((((now() + offset) % WRAP) - units + WRAP) % WRAP) / 10;

/** Whether the picture that was drawn last shows a held key. */
const isMarked = () => context.getImageData(128, 256 - CELL / 2, 1, 1).data[1] > 128;

/**
 * Press and release a key in turn, each a while after the change before it was seen, and keep how
 * long each took to the first picture that shows it. The server's receipt comes before the picture.
 */
function pressing() {
  const tooks = [];
  let send = null;
  let down = false;
  let sentAt = null; // null while nothing is waited for
  let receipts = 0;
  function change() {
    down = !down;
    sentAt = performance.now();
    const edge = down ? "press" : "release";
    send(JSON.stringify({ type: "push_action", id: `k${sentAt}`, action: { move: "mark" }, edge }));
  }
  return {
    tooks,
    get receipts() {
      return receipts;
    },
    heard(event, say) {
      if (event.type === "session.attached") {
        send = say;
        change();
      }
      if (event.type === "control.applied") receipts++;
    },
    saw(marked) {
      if (sentAt === null || marked !== down) return;
      tooks.push(performance.now() - sentAt);
      sentAt = null;
      setTimeout(change, 100 + 100 * Math.random());
    },
    stop() {
      send = () => {};
    },
  };
}

/** Keep ages of what is shown for `seconds`, and when the first came after `started`. */
function gather(seconds, offset) {
  const started = performance.now();
  const ages = [];
  const keys = pressing();
  let first = null;
  return {
    keys,
    show(source) {
      const units = read(source);
      if (units === null) return;
      first ??= performance.now() - started;
      ages.push(ageOf(units, offset));
      keys.saw(isMarked());
    },
    async result(settle) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * settle));
      ages.length = keys.tooks.length = 0;
      await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
      keys.stop();
      return { ages, first, commands: keys.tooks, receipts: keys.receipts };
    },
  };
}

/** Watch by WebRTC; `signal` takes an offer's SDP and returns the answer's. */
async function watchRtc(signal, { seconds, settle, offset, channel }) {
  const kept = gather(seconds, offset);
  const peer = new RTCPeerConnection();
  const transceiver = peer.addTransceiver("video", { direction: "recvonly" });
  const codecs = RTCRtpReceiver.getCapabilities("video").codecs;
  transceiver.setCodecPreferences(codecs.filter((each) => each.mimeType === "video/VP8"));
  const video = Object.assign(document.createElement("video"), { muted: true, autoplay: true });
  document.body.append(video);
  peer.ontrack = ({ track }) => (video.srcObject = new MediaStream([track]));
  const onFrame = () => {
    kept.show(video);
    video.requestVideoFrameCallback(onFrame);
  };
  video.requestVideoFrameCallback(onFrame);
  const talk = channel ? talkOn(peer.createDataChannel("events"), kept.keys) : null;
  await peer.setLocalDescription();
  await peer.setRemoteDescription({ type: "answer", sdp: await signal(peer.localDescription.sdp) });
  const result = await kept.result(settle);
  clearInterval(talk);
  peer.close();
  video.remove();
  return result;
}

function talkOn(channel, keys) {
  channel.onmessage = ({ data }) => {
    const event = JSON.parse(data);
    keys.heard(event, (text) => channel.readyState === "open" && channel.send(text));
    if (event.type === "media.chunk" && event.last) channel.send(playhead(event));
  };
  return setInterval(() => {
    if (channel.readyState === "open") channel.send(JSON.stringify({ type: "ping", n: 1 }));
  }, 1000);
}

const playhead = ({ chunk, pts_us }) =>
  JSON.stringify({ type: "playhead", id: `p${chunk}`, chunk, pts_us });

/** Watch by a WebSocket; `open` begins, and `take` finds key flag and bytes in a message. */
async function watchSocket(url, open, take, { seconds, settle, offset }) {
  const kept = gather(seconds, offset);
  const decoder = new VideoDecoder({
    output(frame) {
      kept.show(frame);
      frame.close();
    },
    error() {},
  });
  decoder.configure({ codec: "avc1.42c01f", optimizeForLatency: true });
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  let count = 0;
  socket.onopen = () => open(socket);
  socket.onmessage = ({ data }) => {
    const unit = take(data, socket, kept.keys);
    if (unit === null || decoder.state !== "configured") return;
    const type = unit.key ? "key" : "delta";
    decoder.decode(new EncodedVideoChunk({ type, timestamp: ++count, data: unit.bytes }));
  };
  const result = await kept.result(settle);
  socket.close();
  decoder.close();
  return result;
}

globalThis.bench = {
  now,
  ageOf,
  isMarked,
  read,
  bareRtc: (options) => watchRtc((sdp) => globalThis.answerBare(sdp), options),
  ourRtc: (options) =>
    watchRtc(async (sdp) => {
      const reply = await fetch(`/v1/sessions/${options.id}/webrtc`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${options.token}` },
        body: JSON.stringify({ type: "offer", sdp, role: "driver" }),
      });
      return (await reply.json()).sdp;
    }, { ...options, channel: true }),
  bareSocket: (options) =>
    watchSocket(options.url, () => {}, (data) => {
      const bytes = new Uint8Array(data);
      return { key: bytes[0] === 1, bytes: bytes.subarray(1) };
    }, options),
  ourSocket: (options) =>
    watchSocket(
      `ws://${location.host}/v1/sessions/${options.id}/ws`,
      (socket) =>
        socket.send(
          JSON.stringify({ type: "hello", protocol: 1, token: options.token, codecs: ["h264"] }),
        ),
      (data, socket, keys) => {
        if (typeof data === "string") {
          keys.heard(JSON.parse(data), (text) => socket.send(text));
          return null;
        }
        const length = new DataView(data).getUint32(0);
        const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
        if (header.last) socket.send(playhead(header));
        return { key: header.key, bytes: new Uint8Array(data, 4 + length) };
      },
      options,
    ),
};
