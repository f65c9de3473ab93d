// The pictures of a file: one of a photograph, or those of a clip at an even rate.

/** @typedef {{picture: CanvasImageSource, size: {width: number, height: number}, ptsUs: number,
 *   isLast: boolean, isCut: boolean}} Still isCut: whether the clip continues after the last one */

/** The longest part of a clip that is used. */
export const LONGEST_S = 20;

/** Time limit for a seek, in milliseconds. */
const SEEK_MS = 10_000;

/**
 * The moments of a clip to take pictures at, in seconds of its own clock, which need not begin at 0.
 *
 * @param {number} beginS @param {number} endS @param {number} rateHz
 * @returns {{moments: number[], isCut: boolean}}
 */
export function momentsOf(beginS, endS, rateHz) {
  const lengthS = endS > beginS ? endS - beginS : 0;
  // Browsers differ: the duration is up to the beginning of the last picture, or to its end.
  const count = Math.max(1, Math.round(Math.min(lengthS, LONGEST_S) * rateHz));
  const moments = Array.from({ length: count }, (_, index) => beginS + (index + 0.5) / rateHz);
  return { moments, isCut: lengthS > LONGEST_S };
}

/**
 * @param {File} file @param {number} rateHz of a clip
 * @returns {AsyncGenerator<Still>}
 * @throws {Error} the browser cannot read it
 */
export async function* stillsOf(file, rateHz) {
  if (file.type.startsWith("image/")) {
    const picture = await createImageBitmap(file).catch(() => {
      throw new Error(`This browser cannot read that picture (${file.type}).`);
    });
    yield { picture, size: picture, ptsUs: 0, isLast: true, isCut: false };
    picture.close();
    return;
  }
  const { video, beginS } = await open(file);
  try {
    const size = { width: video.videoWidth, height: video.videoHeight };
    if (size.width === 0) throw new Error("That file holds no pictures.");
    const { moments, isCut } = momentsOf(beginS, video.duration, rateHz);
    for (const [index, atS] of moments.entries()) {
      await seek(video, atS);
      const ptsUs = Math.round((index * 1e6) / rateHz);
      yield { picture: video, size, ptsUs, isLast: index === moments.length - 1, isCut };
    }
  } finally {
    URL.revokeObjectURL(video.src);
  }
}

/**
 * @param {File} file
 * @returns {Promise<{video: HTMLVideoElement, beginS: number}>} that shows its first picture
 */
async function open(file) {
  const video = document.createElement("video");
  video.muted = true;
  video.preload = "auto";
  video.src = URL.createObjectURL(file);
  await new Promise((resolve, reject) => {
    video.onloadeddata = resolve;
    video.onerror = () => reject(new Error("This browser cannot read that file."));
  });
  const beginS = video.currentTime; // the time of the first picture, which is not 0 in every file
  if (!Number.isFinite(video.duration)) {
    await seek(video, 1e9); // a recording tells its length only once its end was read
  }
  return { video, beginS };
}

/** @param {HTMLVideoElement} video @param {number} atS */
async function seek(video, atS) {
  await new Promise((resolve, reject) => {
    const late = () => reject(new Error("This browser cannot read on in that file."));
    const timer = setTimeout(late, SEEK_MS);
    video.onerror = late;
    video.onseeked = () => {
      clearTimeout(timer);
      resolve(undefined);
    };
    video.currentTime = atS;
  });
}
