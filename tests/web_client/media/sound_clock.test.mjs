import assert from "node:assert/strict";
import { test } from "node:test";

import { SoundClock } from "../../../web_client/media/sound_clock.js";

const PIECE_US = 20_000;

test("sound is due with the pictures of its time", () => {
  const clock = new SoundClock();
  clock.follow(1_000_000, 5000);
  assert.equal(clock.place(1_040_000, PIECE_US, 5000), 5040);
});

test("pieces that follow each other are played without a gap, though the pictures waver", () => {
  const clock = new SoundClock();
  let endMs = null;
  for (let piece = 0; piece < 100; piece += 1) {
    const waver = [0, 9, -7, 4][piece % 4];
    clock.follow(piece * PIECE_US, 1000 + piece * 20 + waver);
    const atMs = clock.place(piece * PIECE_US + 60_000, PIECE_US, 1000 + piece * 20);
    if (endMs !== null) assert.equal(atMs, endMs);
    endMs = Number(atMs) + 20;
  }
});

test("after a stall sound is with the pictures again", () => {
  const clock = new SoundClock();
  clock.follow(0, 1000);
  clock.place(0, PIECE_US, 1000);
  clock.follow(PIECE_US, 3000);
  assert.equal(clock.place(PIECE_US, PIECE_US, 3000), 3000);
});

test("what is long past is left out, and what is a little late is played at once", () => {
  const clock = new SoundClock();
  clock.follow(1_000_000, 5000);
  assert.equal(clock.place(0, PIECE_US, 5000), null);
  assert.equal(clock.place(900_000, PIECE_US, 5000), 5000);
});

test("sound without pictures keeps its own time", () => {
  const clock = new SoundClock();
  const first = Number(clock.place(700_000, PIECE_US, 1000));
  assert.ok(first > 1000);
  assert.equal(clock.place(720_000, PIECE_US, 1001), first + 20);
});
