import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { Fencepost, FencepostError } from "@fencepost/client";
import { json, lost, problem, serve, transaction } from "./server.mjs";

const tx = { txId: "0193", state: "CREATED" };

async function failure(promise) {
  const error = await promise.then(() => assert.fail("it succeeded"), (e) => e);
  assert.ok(error instanceof FencepostError, String(error));
  return error;
}

test("a request has the key, the filled path, the query and the body", async (t) => {
  const { url, requests } = await serve(t, json(202, tx));
  const client = new Fencepost({ url: `${url}/`, apiKey: "fp_test" });
  const answer = await client.request("post", "/api/v1/tx", {
    query: { wait: "mined", timeout: undefined },
    body: transaction("a"),
    idempotencyKey: "a",
  });
  assert.deepEqual({ ...answer, headers: undefined }, { status: 202, headers: undefined, body: tx });
  assert.equal(requests[0].method, "POST");
  assert.equal(requests[0].url, "/api/v1/tx?wait=mined");
  assert.equal(requests[0].headers.authorization, "Bearer fp_test");
  assert.equal(requests[0].headers["idempotency-key"], "a");
  assert.deepEqual(requests[0].body, transaction("a"));
  await client.get("/api/v1/tx/{txId}", { path: { txId: "a/b c" } });
  assert.equal(requests[1].url, "/api/v1/tx/a%2Fb%20c");
});

test("an answer without a body is undefined, and one that is not JSON is text", async (t) => {
  const { client } = await serve(
    t,
    (_, response) => response.writeHead(204).end(),
    (_, response) => response.writeHead(200, { "content-type": "text/calendar" }).end("BEGIN:VCALENDAR"),
  );
  assert.equal(await client().delete("/api/v1/webhooks/{webhookId}", { path: { webhookId: "1" } }), undefined);
  assert.equal(await client().get("/api/v1/flows.ics"), "BEGIN:VCALENDAR");
});

test("an error has the members of the problem document", async (t) => {
  const more = { field: "payload.gas", httpRequestId: "7c1f", revertReason: "no" };
  const { client } = await serve(t, problem(422, "would_revert", more, { "retry-after": "7" }));
  const error = await failure(client().post("/api/v1/tx", { body: transaction("a") }));
  assert.equal(error.name, "FencepostError");
  assert.equal(error.message, "would_revert: about would_revert");
  assert.equal(error.status, 422);
  assert.equal(error.code, "would_revert");
  assert.equal(error.detail, "about would_revert");
  assert.equal(error.field, "payload.gas");
  assert.equal(error.parameter, undefined);
  assert.equal(error.retryAfter, 7);
  assert.equal(error.httpRequestId, "7c1f");
  assert.equal(error.problem.revertReason, "no");
  assert.equal(error.outcomeUnknown, false);
});

test("the page of a proxy is an unexpected answer", async (t) => {
  const { client, requests } = await serve(t, (_, response) => response.writeHead(502).end("<h1>Bad Gateway</h1>"));
  const error = await failure(client().post("/api/v1/transfers/{transferId}/fail", {
    path: { transferId: "1" },
    body: { reason: "x" },
  }));
  assert.equal(error.code, "unexpected_answer");
  assert.equal(error.status, 502);
  assert.match(error.detail, /Bad Gateway/);
  assert.equal(error.outcomeUnknown, true);
  assert.equal(requests.length, 1);
});

test("a redirect is not followed: the key would go elsewhere", async (t) => {
  const other = await serve(t, json(200, tx));
  const { client, requests } = await serve(t, (_, response) => response.writeHead(302, { location: other.url }).end());
  const error = await failure(client().get("/api/v1/signers"));
  assert.deepEqual([error.code, error.status], ["unexpected_answer", 302]);
  assert.deepEqual([requests.length, other.requests.length], [1, 0]);
});

test("a create with a request id is repeated, with the same id, until its outcome is known", async (t) => {
  const { client, requests } = await serve(
    t,
    problem(503, "no_leader", {}, { "retry-after": "0" }),
    problem(503, "outcome_unknown", {}, { "retry-after": "0" }),
    lost,
    problem(429, "rate_limited", {}, { "retry-after": "0" }),
    (_, response) => response.writeHead(504).end("gateway timeout"),
    json(200, tx),
  );
  const retried = [];
  const options = { onRetry: (error) => retried.push(error.code) };
  const answer = await client(options).request("post", "/api/v1/tx", { body: transaction("payout-1") });
  assert.equal(answer.status, 200);
  assert.deepEqual(retried, ["no_leader", "outcome_unknown", "connection_lost", "rate_limited", "unexpected_answer"]);
  for (const request of requests) assert.deepEqual(request.body, transaction("payout-1"));
});

for (const [name, answer, code] of [
  ["its outcome is unknown", problem(503, "outcome_unknown", {}, { "retry-after": "0" }), "outcome_unknown"],
  ["its answer is lost", lost, "connection_lost"],
  ["a proxy reports an error", (_, response) => response.writeHead(503).end("busy"), "unexpected_answer"],
]) {
  test(`a request without a name is not repeated if ${name}`, async (t) => {
    const { client, requests } = await serve(t, answer, json(200, {}));
    const cancel = { path: { txId: "1" }, body: { reason: "x" } };
    const error = await failure(client().post("/api/v1/tx/{txId}/cancel", cancel));
    assert.equal(error.code, code);
    assert.equal(error.outcomeUnknown, true);
    assert.equal(requests.length, 1);
  });
}

test("a request without a name is repeated if nothing happened", async (t) => {
  const { client, requests } = await serve(t, problem(503, "busy", {}, { "retry-after": "0" }), json(200, {}));
  await client().post("/api/v1/tx/{txId}/cancel", { path: { txId: "1" }, body: { reason: "x" } });
  assert.equal(requests.length, 2);
});

test("a batch is repeated only if each of its items has a name", async (t) => {
  const { client, requests } = await serve(t, lost, json(200, { results: [] }));
  const batch = (...items) => client().post("/api/v1/tx/batch", { body: { items } });
  await failure(batch(transaction("a"), { ...transaction("b"), requestId: null }));
  assert.equal(requests.length, 1);
  const second = await serve(t, lost, json(200, { results: [] }));
  await second.client().post("/api/v1/tx/batch", { body: { items: [transaction("a"), transaction("b")] } });
  assert.equal(second.requests.length, 2);
});

test("a refusal is not repeated", async (t) => {
  const { client, requests } = await serve(t, problem(422, "cooldown", {}, { "retry-after": "0" }));
  const body = { guildId: "1", initiatorId: "2", targetId: "3", amount: "4", idempotencyKey: "k" };
  assert.equal((await failure(client().post("/api/v1/transfers", { body }))).code, "cooldown");
  assert.equal(requests.length, 1);
});

test("the delay is at least what the answer asks for", async (t) => {
  const { client, requests } = await serve(t, problem(503, "busy", {}, { "retry-after": "1" }), json(200, tx));
  await client().post("/api/v1/tx", { body: transaction("a") });
  assert.ok(requests[1].at - requests[0].at >= 1000);
});

test("a delay that does not fit into retryForMs is left to the caller", async (t) => {
  const { client, requests } = await serve(t, problem(429, "rate_limited", {}, { "retry-after": "60" }));
  const error = await failure(client().get("/api/v1/signers"));
  assert.equal(error.retryAfter, 60);
  assert.equal(requests.length, 1);
});

test("with retryForMs: 0 nothing is repeated", async (t) => {
  const { client, requests } = await serve(t, lost);
  await failure(client({ retryForMs: 0 }).get("/api/v1/signers"));
  assert.equal(requests.length, 1);
});

test("no answer in time is a timeout, and is repeated as a lost answer is", async (t) => {
  const { client, requests } = await serve(t, () => {}, json(200, tx));
  await client({ timeoutMs: 100 }).post("/api/v1/tx", { body: transaction("a") });
  assert.equal(requests.length, 2);
  const silent = await serve(t, () => {});
  const error = await failure(silent.client({ timeoutMs: 100, retryForMs: 0 }).get("/api/v1/signers"));
  assert.equal(error.code, "timeout");
  assert.equal(error.status, 0);
});

test("retryForMs counts from the first failure: a timeout that took as long is repeated", async (t) => {
  const asByDefault = { timeoutMs: 1000, retryForMs: 1000 }; // 30 s each
  const { client, requests } = await serve(t, () => {}, json(200, tx));
  await client(asByDefault).post("/api/v1/tx", { body: transaction("a") });
  assert.equal(requests.length, 2);
  const silent = await serve(t, () => {});
  assert.equal((await failure(silent.client(asByDefault).get("/api/v1/signers"))).code, "timeout");
  assert.equal(silent.requests.length, 2, "the second failure comes after the end of retryForMs");
});

test("a request that was never sent is repeated, whatever it is", async (t) => {
  const closed = createServer().listen(0, "127.0.0.1");
  await once(closed, "listening");
  const url = `http://127.0.0.1:${closed.address().port}`;
  closed.close();
  await once(closed, "close");
  const codes = [];
  const client = new Fencepost({ url, apiKey: "k", retryForMs: 1500, onRetry: (e) => codes.push(e.code) });
  const error = await failure(client.post("/api/v1/tx/{txId}/cancel", { path: { txId: "1" }, body: { reason: "x" } }));
  assert.equal(error.code, "cannot_connect");
  assert.match(error.detail, /ECONNREFUSED/);
  assert.equal(error.outcomeUnknown, false);
  assert.ok(codes.length > 0 && codes.every((code) => code === "cannot_connect"));
  t.diagnostic(`${codes.length} repetitions`);
});

test("a lost route counts as not sent only while the connection is made", async () => {
  const failing = (syscall, code) => ({ syscall, code, message: `${syscall} ${code}` });
  for (const [reason, code] of [
    [failing("connect", "EHOSTUNREACH"), "cannot_connect"],
    [failing("getaddrinfo", "EAI_AGAIN"), "cannot_connect"],
    [{ errors: [failing("connect", "ENETUNREACH"), failing("connect", "ECONNREFUSED")] }, "cannot_connect"],
    [{ code: "UND_ERR_CONNECT_TIMEOUT", message: "Connect Timeout Error" }, "cannot_connect"],
    [failing("read", "EHOSTUNREACH"), "connection_lost"],
    [failing("write", "ENETUNREACH"), "connection_lost"],
    [{ errors: [failing("connect", "ECONNREFUSED"), failing("read", "ENETUNREACH")] }, "connection_lost"],
    [undefined, "connection_lost"],
  ]) {
    let sent = 0;
    const fetch = async () => {
      ++sent;
      throw new TypeError("fetch failed", { cause: reason });
    };
    const client = new Fencepost({ url: "http://127.0.0.1:1", apiKey: "k", retryForMs: 300, fetch });
    const error = await failure(client.post("/api/v1/tx/{txId}/cancel", { path: { txId: "1" }, body: { reason: "x" } }));
    assert.equal(error.code, code, JSON.stringify(reason));
    assert.equal(error.outcomeUnknown, code === "connection_lost");
    if (code === "connection_lost") assert.equal(sent, 1, "the request may have arrived");
  }
});

test("an aborted request rejects with the reason, also between two attempts", async (t) => {
  const { client } = await serve(t, () => {});
  const request = new AbortController();
  const running = client().get("/api/v1/signers", { signal: request.signal });
  request.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
  await assert.rejects(client().get("/api/v1/signers", { signal: request.signal }), /enough/);

  const busy = await serve(t, problem(503, "busy", {}, { "retry-after": "20" }));
  const wait = new AbortController();
  const waiting = busy.client({ onRetry: () => wait.abort(new Error("no more")) });
  await assert.rejects(waiting.get("/api/v1/signers", { signal: wait.signal }), /no more/);
});

test("a list is read page after page", async (t) => {
  const { client, requests } = await serve(
    t,
    json(200, { items: [{ txId: "1" }, { txId: "2" }], nextCursor: "c2" }),
    json(200, { items: [{ txId: "3" }], nextCursor: null }),
  );
  const ids = [];
  for await (const { txId } of client().list("/api/v1/tx", { query: { state: "STUCK" } })) ids.push(txId);
  assert.deepEqual(ids, ["1", "2", "3"]);
  assert.deepEqual(requests.map((r) => r.url), ["/api/v1/tx?state=STUCK", "/api/v1/tx?state=STUCK&cursor=c2"]);
});
