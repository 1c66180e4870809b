// Against a real node with a chain: FENCEPOST_URL, FENCEPOST_API_KEY (scope admin), SIGNER.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Fencepost, FencepostError } from "@fencepost/client";

const { FENCEPOST_URL: url, FENCEPOST_API_KEY: apiKey, SIGNER: signer } = process.env;
const fencepost = new Fencepost({ url, apiKey });
const recipient = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const run = Date.now(); // so that the tests may run again on the same node
const transaction = (name, value = "1") => ({ signer, requestId: `${name}-${run}`, payload: { to: recipient, value } });

async function failure(promise) {
  const error = await promise.then(() => assert.fail("it succeeded"), (e) => e);
  assert.ok(error instanceof FencepostError, String(error));
  return error;
}

test("a create is accepted, then replayed, and refused with another payload", async () => {
  const first = await fencepost.request("post", "/api/v1/tx", { body: transaction("create") });
  const again = await fencepost.request("post", "/api/v1/tx", { body: transaction("create") });
  assert.equal(first.status, 202);
  assert.equal(again.status, 200);
  assert.equal(again.body.txId, first.body.txId);
  const error = await failure(fencepost.post("/api/v1/tx", { body: transaction("create", "2") }));
  assert.equal(error.status, 409);
  assert.equal(error.code, "request_conflict");
  assert.equal(error.problem.txId, first.body.txId);
  assert.equal(error.outcomeUnknown, false);
});

test("the header names a request as the body does", async () => {
  const body = { signer, payload: { to: recipient, value: "1" } };
  const requestId = `header-${run}`;
  const first = await fencepost.post("/api/v1/tx", { body, idempotencyKey: requestId });
  const found = await fencepost.get("/api/v1/tx/by-request", { query: { signer, requestId } });
  assert.equal(found.txId, first.txId);
});

test("errors say what is wrong and where", async () => {
  const { to, value } = transaction("x").payload;
  const body = { signer, requestId: "wrong", payload: { to, value, gas: "20000" } };
  const gas = await failure(fencepost.post("/api/v1/tx", { body }));
  assert.deepEqual([gas.status, gas.code, gas.field], [400, "gas_too_low", "payload.gas"]);
  assert.match(gas.httpRequestId, /./);
  const query = await failure(fencepost.get("/api/v1/tx", { query: { limit: 0 } }));
  assert.deepEqual([query.code, query.parameter], ["invalid_parameter", "limit"]);
  const stranger = new Fencepost({ url, apiKey: "fp_wrong" });
  assert.equal((await failure(stranger.get("/api/v1/whoami"))).code, "bad_api_key");
  await assert.rejects(async () => { for await (const _ of stranger.events()) break; }, { code: "bad_api_key" });
});

test("a list goes over all its pages", async () => {
  const made = [];
  for (let i = 0; i < 5; ++i) made.push((await fencepost.post("/api/v1/tx", { body: transaction(`list-${i}`) })).txId);
  const listed = [];
  for await (const tx of fencepost.list("/api/v1/tx", { query: { signer, limit: 2 } })) listed.push(tx.txId);
  assert.deepEqual(listed.slice(0, 5), made.reverse());
  const signers = [];
  for await (const each of fencepost.list("/api/v1/signers")) signers.push(each.signer);
  assert.ok(signers.includes(signer));
});

test("the events after the newest one show a transaction's whole life", { timeout: 60_000 }, async () => {
  const after = await fencepost.newestEventId();
  const tx = await fencepost.post("/api/v1/tx", { body: transaction("life") });
  const seen = [];
  for await (const event of fencepost.events({ after, subject: [`tx/${tx.txId}`] })) {
    assert.equal(event.specversion, "1.0");
    assert.equal(event.data.txId, tx.txId);
    seen.push([Number(event.id), event.type]);
    if (event.type === "TxConfirmed") break;
  }
  const log = await fencepost.get("/api/v1/tx/{txId}/events", { path: { txId: tx.txId } });
  assert.deepEqual(seen, log.items.map((item) => [item.seq, item.type]));
  assert.equal(seen[0][1], "TxAccepted");
  const done = await fencepost.get("/api/v1/tx/{txId}", { path: { txId: tx.txId }, query: { wait: "confirmed" } });
  assert.equal(done.state, "CONFIRMED");
});

test("an id that the log has not reached is refused", async () => {
  const events = fencepost.events({ after: "9000000000" });
  await assert.rejects(async () => { for await (const _ of events) break; }, { code: "unknown_event_id" });
});

test("points, a statement as text, and an answer without a body", async () => {
  const guildId = String(run);
  const account = { guildId, memberId: "1" };
  const issue = { path: account, body: { amount: "100", reason: "prize", idempotencyKey: "prize" } };
  const minted = await fencepost.post("/api/v1/guilds/{guildId}/accounts/{memberId}/mint", issue);
  assert.equal(minted.balance, "100");
  const body = { guildId, initiatorId: "1", targetId: "2", amount: "101", idempotencyKey: "t", mode: "sync" };
  const error = await failure(fencepost.post("/api/v1/transfers", { body }));
  assert.deepEqual([error.status, error.code, error.problem.balance], [422, "insufficient_balance", "100"]);
  const statement = "/api/v1/guilds/{guildId}/accounts/{memberId}/statement";
  assert.match(await fencepost.get(statement, { path: account, query: { format: "csv" } }), /^ledgerId,.*\r\n.*,mint,100,/);
  const { id: webhookId } = await fencepost.post("/api/v1/webhooks", { body: { url: "http://127.0.0.1:1/" } });
  assert.equal(await fencepost.delete("/api/v1/webhooks/{webhookId}", { path: { webhookId } }), undefined);
});
