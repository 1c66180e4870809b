import assert from "node:assert/strict";
import { test } from "node:test";
import { FencepostError } from "@fencepost/client";
import { event, lost, newest, problem, serve, stream } from "./server.mjs";

// The ids of the first `count` events of the stream.
async function take(events, count) {
  const ids = [];
  for await (const { id } of events) {
    ids.push(Number(id));
    if (ids.length === count) break;
  }
  return ids;
}
const positions = (requests) => requests.map((request) => request.headers["last-event-id"]);

test("the stream goes on after the last event, however the connection ended", async (t) => {
  const { client, requests } = await serve(
    t,
    stream([event(1), event(2)], "destroy"),
    lost,
    problem(503, "stopping", {}, { "retry-after": "0" }),
    stream([event(3), event(4).slice(0, -5)], "end"), // the end of 4 is missing
    stream([event(4)], "end"),
    stream([event(5)], "open"),
  );
  const failures = [];
  const events = client().events({ after: "0", onReconnect: (error) => failures.push(error?.code) });
  assert.deepEqual(await take(events, 5), [1, 2, 3, 4, 5]);
  assert.equal(events.lastEventId, "5");
  assert.deepEqual(positions(requests), ["0", "2", "2", "2", "3", "4"]);
  assert.deepEqual(failures, ["connection_lost", "connection_lost", "stopping", undefined, undefined]);
});

test("an event that comes again is not handed out again", async (t) => {
  const { client } = await serve(t, stream([event(1), event(2)]), stream([event(2), event(3)], "open"));
  assert.deepEqual(await take(client().events({ after: "0" }), 3), [1, 2, 3]);
});

test("ids are compared as numbers of 64 bits", async (t) => {
  const { client } = await serve(t, stream([9, 10, "9223372036854775806", "9223372036854775807"].map((id) => event(id))));
  const ids = [];
  for await (const { id } of client().events({ after: "8" })) if (ids.push(id) === 4) break;
  assert.deepEqual(ids, ["9", "10", "9223372036854775806", "9223372036854775807"]);
});

test("without a position the stream begins after the newest event, and resumes there if no event came", async (t) => {
  const { client, requests } = await serve(t, newest("41"), stream([]), lost, stream([event(42)], "open"));
  assert.deepEqual(await take(client().events(), 1), [42]);
  assert.deepEqual(positions(requests.slice(1)), ["41", "41", "41"]);
});

test("a message without data moves the position", async (t) => {
  const { client, requests } = await serve(t, stream([event(1), "id: 1001\n\n"]), stream([event(1002)], "open"));
  assert.deepEqual(await take(client().events({ after: "0" }), 2), [1, 1002]);
  assert.deepEqual(positions(requests), ["0", "1001"]);
});

test("filters are lists", async (t) => {
  const { client, requests } = await serve(t, stream([event(1)]));
  await take(client().events({ after: "0", type: ["TxConfirmed", "TxFailed"], chain: [1, "10"], signer: [] }), 1);
  assert.equal(requests[0].url, "/api/v1/events?type=TxConfirmed%2CTxFailed&chain=1%2C10");
});

test("an event that is cut between two bytes of a letter is whole", async (t) => {
  const text = Buffer.from('id: 1\ndata: {"id":"1","detail":"größer"}\n\n');
  const cut = text.indexOf("ß") + 1;
  const { client } = await serve(t, (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text.subarray(0, cut), () => setImmediate(() => response.write(text.subarray(cut))));
  });
  for await (const { detail } of client().events({ after: "0" })) {
    assert.equal(detail, "größer");
    break;
  }
});

test("waits grow, are as long as the server asks, and begin anew when something came", async (t) => {
  const { client } = await serve(
    t,
    stream([event(1)], "destroy"),
    lost,
    lost,
    problem(429, "rate_limited", {}, { "retry-after": "1" }),
    stream([event(2)], "destroy"),
    stream([event(3)], "open"),
  );
  const delays = [];
  await take(client().events({ after: "0", onReconnect: (_, delay) => delays.push(delay) }), 3);
  assert.equal(delays.length, 5);
  assert.ok(delays[0] <= 1, `${delays}`); // the server asked for 1 ms
  assert.ok(delays[2] > delays[0] && delays[2] <= 4, `${delays}`);
  assert.ok(delays[3] >= 1000, `${delays}`);
  assert.ok(delays[4] <= 1, `${delays}`);
});

for (const [status, code] of [[401, "api_key_revoked"], [400, "unknown_event_id"], [403, "insufficient_scope"]]) {
  test(`a refusal ends the iteration: ${code}`, async (t) => {
    const { client } = await serve(t, stream([event(1)]), problem(status, code));
    const events = client().events({ after: "0" });
    const seen = [];
    await assert.rejects(
      async () => { for await (const { id } of events) seen.push(id); },
      (error) => error instanceof FencepostError && error.code === code && error.status === status,
    );
    assert.deepEqual(seen, ["1"]);
  });
}

test("a server that cannot be reached at the start is an error, not a silent wait", async (t) => {
  const { client } = await serve(t, lost);
  for (const after of ["5", undefined]) {
    const events = client({ retryForMs: 200 }).events({ after });
    await assert.rejects(take(events, 1), (error) => error.code === "connection_lost");
  }
});

test("something else than a stream is an error", async (t) => {
  const { client } = await serve(t, (_, response) => response.writeHead(200).end("hello"));
  await assert.rejects(take(client().events({ after: "0" }), 1), (error) => error.code === "unexpected_answer");
});

test("an abort ends a waiting iteration without an error, and the connection with it", async (t) => {
  let closed;
  const connectionClosed = new Promise((resolve) => (closed = resolve));
  const { client } = await serve(t, (request, response) => {
    stream([event(1)], "open")(request, response);
    request.socket.on("close", closed);
  });
  const stop = new AbortController();
  const events = client().events({ after: "0", signal: stop.signal });
  const seen = [];
  for await (const { id } of events) {
    seen.push(id);
    setImmediate(() => stop.abort());
  }
  assert.deepEqual(seen, ["1"]);
  assert.equal(events.lastEventId, "1");
  await connectionClosed;
});

test("an abort before the start, while waiting to reconnect, and close() end it, too", async (t) => {
  const { client } = await serve(t, stream([event(1)]), lost);
  assert.deepEqual(await take(client().events({ after: "0", signal: AbortSignal.abort() }), 1), []);
  const events = client().events({ after: "0", onReconnect: () => events.close() });
  assert.deepEqual(await take(events, 9), [1]);
});

test("leaving the loop closes the connection", async (t) => {
  let closed;
  const connectionClosed = new Promise((resolve) => (closed = resolve));
  const { client } = await serve(t, (request, response) => {
    stream([event(1)], "open")(request, response);
    request.socket.on("close", closed);
  });
  await take(client().events({ after: "0" }), 1);
  await connectionClosed;
});

test("a connection on which nothing comes, not even a comment, is replaced", { timeout: 20_000 }, async (t) => {
  // Node 18 mocks no timers: replace the one that the client arms while it reads.
  const { setTimeout: real } = globalThis;
  t.after(() => (globalThis.setTimeout = real));
  globalThis.setTimeout = (work, ms, ...rest) => real(work, ms === 45_000 ? 100 : ms, ...rest);
  const { client, requests } = await serve(t, stream([event(1)], "open"), stream([event(2)], "open"));
  const failures = [];
  const events = client().events({ after: "0", onReconnect: (error) => failures.push(error.code) });
  assert.deepEqual(await take(events, 2), [1, 2]);
  assert.deepEqual(failures, ["timeout"]);
  assert.deepEqual(positions(requests), ["0", "1"]);
});
