// Pictures of a file: one of a photograph, one after the other of a clip, at an even rate.

/** @typedef {{picture: CanvasImageSource, size: {width: number, height: number}, ptsUs: number,
 *   isLast: boolean, isCut: boolean}} Still isCut: whether the clip goes on after its last one */

/** How much of a clip is taken. */
export const LONGEST_S = 20;

/**
 * @param {File} file @param {number} rateHz of a clip
 * @returns {AsyncGenerator<Still>}
 * @throws {Error} the browser cannot read it
 */
export async function* stillsOf(file, rateHz) {
  if (file.type.startsWith("image/")) {
    const picture = await createImageBitmap(file);
    yield { picture, size: picture, ptsUs: 0, isLast: true, isCut: false };
    picture.close();
    return;
  }
  const video = await open(file);
  try {
    const size = { width: video.videoWidth, height: video.videoHeight };
    const count = Math.max(1, Math.floor(Math.min(video.duration, LONGEST_S) * rateHz));
    const isCut = video.duration > LONGEST_S;
    for (let index = 0; index < count; index += 1) {
      await seek(video, (index + 0.5) / rateHz);
      const ptsUs = Math.round((index * 1e6) / rateHz);
      yield { picture: video, size, ptsUs, isLast: index === count - 1, isCut };
    }
  } finally {
    URL.revokeObjectURL(video.src);
  }
}

/** @param {File} file @returns {Promise<HTMLVideoElement>} ready to show its first picture */
async function open(file) {
  const video = document.createElement("video");
  video.muted = true;
  video.preload = "auto";
  video.src = URL.createObjectURL(file);
  await new Promise((resolve, reject) => {
    video.onloadeddata = resolve;
    video.onerror = () => reject(new Error("This browser cannot read that file."));
  });
  if (Number.isFinite(video.duration)) return video;
  await seek(video, 1e9); // a recording that does not say how long it is, until its end is seen
  return video;
}

/** @param {HTMLVideoElement} video @param {number} atS */
async function seek(video, atS) {
  const sought = new Promise((resolve) => (video.onseeked = resolve));
  video.currentTime = atS;
  await sought;
}
