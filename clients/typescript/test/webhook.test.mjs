import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { WebhookError, verifyWebhook } from "@fencepost/client/webhook";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER = "whsec_" + Buffer.alloc(32, 7).toString("base64");
const NOW = 1_614_265_330;
const now = () => NOW * 1000;

const sign = (secret, id, timestamp, body) =>
  "v1," + createHmac("sha256", Buffer.from(secret.slice(6), "base64")).update(`${id}.${timestamp}.${body}`).digest("base64");

function request(body, { secret = SECRET, timestamp = NOW, id = "w_1" } = {}) {
  const signature = sign(secret, id, timestamp, body);
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": signature };
}
function refused(code, ...args) {
  assert.throws(() => verifyWebhook(...args), (error) => error instanceof WebhookError && error.code === code);
}

test("the example of the Standard Webhooks specification verifies", () => {
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  assert.deepEqual(verifyWebhook('{"test": 2432232314}', headers, SECRET, { now }), [{ test: 2432232314 }]);
});

test("bytes, text, Headers and a batch verify", () => {
  const body = JSON.stringify([{ id: "1", detail: "größer" }, { id: "2" }]);
  const headers = request(body);
  for (const form of [body, Buffer.from(body), new Uint8Array(Buffer.from(body))]) {
    for (const given of [headers, new Headers(headers)]) {
      assert.deepEqual(verifyWebhook(form, given, SECRET, { now }).map((event) => event.id), ["1", "2"]);
    }
  }
});

test("a changed body, id, timestamp or secret does not verify", () => {
  const headers = request("{}");
  refused("bad_signature", "{} ", headers, SECRET, { now });
  refused("bad_signature", "{}", { ...headers, "webhook-id": "w_2" }, SECRET, { now });
  refused("bad_signature", "{}", { ...headers, "webhook-timestamp": String(NOW + 1) }, SECRET, { now });
  refused("bad_signature", "{}", headers, OTHER, { now });
  refused("bad_signature", "{}", headers, [], { now });
});

test("during a rotation either secret verifies, on both sides", () => {
  const headers = request("{}");
  const both = `${sign(OTHER, "w_1", NOW, "{}")} ${headers["webhook-signature"]}`;
  for (const secret of [SECRET, OTHER]) {
    assert.deepEqual(verifyWebhook("{}", { ...headers, "webhook-signature": both }, secret, { now }), [{}]);
  }
  assert.deepEqual(verifyWebhook("{}", headers, [OTHER, SECRET], { now }), [{}]);
});

test("signatures of another length, version or form are refused, not an error of the program", () => {
  const headers = request("{}");
  for (const signature of ["v1,", "v1,AAAA", "v2," + headers["webhook-signature"].slice(3), "x", "v1a,abc", " "]) {
    refused("bad_signature", "{}", { ...headers, "webhook-signature": signature }, SECRET, { now });
  }
});

test("a request is accepted for five minutes, before and after", () => {
  for (const [offset, code] of [[-300, null], [300, null], [-301, "too_old"], [301, "too_new"]]) {
    const headers = request("{}", { timestamp: NOW + offset });
    if (code === null) assert.deepEqual(verifyWebhook("{}", headers, SECRET, { now }), [{}]);
    else refused(code, "{}", headers, SECRET, { now });
  }
  refused("too_old", "{}", request("{}", { timestamp: NOW - 11 }), SECRET, { now, toleranceSeconds: 10 });
  refused("too_old", "{}", request("{}"), SECRET); // by the system's clock
});

test("missing headers and other timestamps are refused", () => {
  for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature"]) {
    const { [name]: _, ...headers } = request("{}");
    refused("missing_header", "{}", headers, SECRET, { now });
    refused("missing_header", "{}", new Headers(headers), SECRET, { now });
    refused("missing_header", "{}", { ...headers, [name]: ["a", "b"] }, SECRET, { now });
  }
  for (const timestamp of ["1e9", "-1", "NaN", "0x10", `${NOW}.5`]) {
    refused("bad_timestamp", "{}", { ...request("{}"), "webhook-timestamp": timestamp }, SECRET, { now });
  }
});

test("a signed body that is not JSON is refused", () => {
  refused("bad_body", "hello", request("hello"), SECRET, { now });
});

test("a mistyped secret is an error of the program", () => {
  for (const secret of ["", "whsec_", "whsec_!!", SECRET.slice(0, -1)]) {
    assert.throws(() => verifyWebhook("{}", request("{}"), secret, { now }), TypeError, secret);
  }
});
