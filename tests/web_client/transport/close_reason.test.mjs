import assert from "node:assert/strict";
import { test } from "node:test";

import { BROKEN, backoffMs, closeReasonOf, closeReasonOfFailure, codeOfBye, codeOfFailure } from "../../../web_client/transport/close_reason.js";
import { RefusedError } from "../../../web_client/transport/requests.js";

test("a lost socket is tried again, whatever the network calls it", () => {
  for (const code of [1001, 1005, 1006, 1011, 1012, 1013, 4413, 4429, 4999]) {
    assert.equal(closeReasonOf(code).next, "retry", String(code));
  }
});

test("a session that is gone is begun anew", () => {
  for (const code of [4401, 4404]) assert.equal(closeReasonOf(code).next, "renew", String(code));
});

test("what trying again cannot mend waits for the person", () => {
  assert.deepEqual(
    [1000, 4400, 4408, 4409].map((code) => [closeReasonOf(code).next, closeReasonOf(code).nextAction]),
    [["over", "renew"], ["over", "retry"], ["over", "retry"], ["over", "retry"]],
  );
});

test("a full server is tried again when it says", () => {
  const busy = new RefusedError(503, { code: "pool_full", message: "it is full", retry_after_s: 2.5 });
  assert.deepEqual(closeReasonOfFailure(busy), {
    next: "retry",
    isBusy: true,
    reason: "It is full.",
    waitMs: 2500,
  });
});

test("a server that does not say when is not tried again by itself", () => {
  const over = new RefusedError(503, { code: "gone", message: "given up", retry_after_s: null });
  assert.deepEqual(closeReasonOfFailure(over), { next: "over", nextAction: "retry", reason: "Given up." });
});

test("nothing is promised about a world behind a server that is away", () => {
  assert.match(closeReasonOf(1006).reason, /will try to continue/);
  assert.match(closeReasonOf(4404).reason, /The old world is lost; a new one begins/);
});

test("a request that is wrong is not repeated", () => {
  const wrong = new RefusedError(404, { code: "unknown_model", message: "no model x" });
  assert.equal(closeReasonOfFailure(wrong).next, "over");
  assert.equal(closeReasonOfFailure(wrong).reason, "No model x.");
});

test("a server that cannot be reached is tried again", () => {
  assert.equal(closeReasonOfFailure(new TypeError("fetch failed")).next, "retry");
});

test("waits grow to five seconds and are spread", () => {
  assert.deepEqual([0, 1, 2, 9].map((attempt) => backoffMs(attempt, 0.5)), [250, 500, 1000, 5000]);
  assert.ok(backoffMs(9, 0) < 5000 && backoffMs(9, 1) > 5000);
});

test("a peer that the server ends for a reason of the session ends as a socket would", () => {
  for (const code of [1000, 1012, 4404, 4408, 4409, 4413]) {
    assert.equal(codeOfBye({ code, reason: "whatever" }), code);
  }
});

test("a peer that ends for a reason of the way there leaves it to another way", () => {
  for (const reason of ["heartbeat", "connect_timeout", "internal_error"]) {
    assert.equal(codeOfBye({ code: 4408, reason }), BROKEN);
  }
});

test("a peer that cannot be had is no reason to give up a session that is there", () => {
  const refused = (/** @type {number} */ status, /** @type {string} */ code) =>
    codeOfFailure(new RefusedError(status, { code, message: "no", retry_after_s: 5 }));
  assert.equal(refused(404, "no_such_session"), 4404);
  assert.equal(refused(410, "closed"), 4404);
  assert.equal(refused(401, "unauthorized"), 4401);
  assert.deepEqual(
    [refused(503, "no_candidates"), refused(429, "too_many_peers"), refused(406, "no_common_codec")],
    [BROKEN, BROKEN, BROKEN],
  );
  assert.equal(codeOfFailure(new TypeError("network")), BROKEN);
});
