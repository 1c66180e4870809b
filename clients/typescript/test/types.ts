// What a program may say with the client's types, and what it may not: each @ts-expect-error is an error of the compiler
// if the line below it is none. tests/client_typescript_test.cpp compiles it against the packed client.
import { Fencepost, FencepostError, type AnswerOf, type FencepostEvent, type Schemas } from "@fencepost/client";
import { verifyWebhook, type WebhookEvent } from "@fencepost/client/webhook";

const fencepost = new Fencepost({ url: "http://127.0.0.1:8080", apiKey: "fp_x" });
const payload = { to: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", value: "1" };

export async function requests(signal: AbortSignal): Promise<string[]> {
  const body = { signer: payload.to, requestId: "a", payload };
  const tx = await fencepost.post("/api/v1/tx", { body, query: { wait: "mined", timeout: "30s" }, signal });
  const state: Schemas["TxState"] = tx.state;
  const answer = await fencepost.request("post", "/api/v1/tx", { body });
  const status: number = answer.status;
  const one = await fencepost.get("/api/v1/tx/{txId}", { path: { txId: tx.txId } });
  const me = await fencepost.get("/api/v1/whoami");
  const nothing: undefined = await fencepost.delete("/api/v1/webhooks/{webhookId}", { path: { webhookId: "1" } });
  const calendar: string = await fencepost.get("/api/v1/flows.ics");
  const ids: string[] = [];
  for await (const item of fencepost.list("/api/v1/tx", { query: { state: "STUCK" } })) ids.push(item.txId);
  for await (const item of fencepost.list("/api/v1/signers")) ids.push(item.signer);

  // @ts-expect-error: there is no such path
  await fencepost.get("/api/v1/txs");
  // @ts-expect-error: the path has no such method
  await fencepost.delete("/api/v1/tx");
  // @ts-expect-error: the path has a parameter
  await fencepost.get("/api/v1/tx/{txId}");
  // @ts-expect-error: a create has a body
  await fencepost.post("/api/v1/tx");
  // @ts-expect-error: there is no such member
  await fencepost.post("/api/v1/tx", { body: { ...body, payload: { gasLimit: "1" } } });
  // @ts-expect-error: there is no such state to wait for
  await fencepost.post("/api/v1/tx", { body, query: { wait: "done" } });
  await fencepost.post("/api/v1/tx", { body, idempotencyKey: "a" });
  // @ts-expect-error: a cancel takes no key, so a key would not make it safe to repeat
  await fencepost.post("/api/v1/tx/{txId}/cancel", { path: one, body: { reason: "x" }, idempotencyKey: "a" });
  // @ts-expect-error: a GET has no body
  await fencepost.get("/api/v1/whoami", { body: {} });
  // @ts-expect-error: an answer has no such member
  tx.hash;
  // @ts-expect-error: not a list
  fencepost.list("/api/v1/whoami");
  // @ts-expect-error: the stream is read with events()
  await fencepost.get("/api/v1/events");
  return [state, one.txId, `${status} ${nothing} ${calendar} ${JSON.stringify(me)}`, ...ids];
}

export async function events(after: string | undefined): Promise<void> {
  const stream = fencepost.events({ type: ["TxConfirmed", "TxFailed"], after, chain: [1, "10"] });
  for await (const event of stream) {
    if (event.type === "TxConfirmed") console.log(event.data.txHash, event.data.confirmations.length);
    else if (event.type === "EventsGap") console.log(event.data.from, event.data.to);
    else console.log(event.data.reason);
    // @ts-expect-error: these types were not asked for
    if (event.type === "TxStuck") break;
  }
  const position: string | undefined = stream.lastEventId;
  for await (const event of fencepost.events()) if (event.type === "FlowStatusChanged") console.log(event.data.flowId);
  // @ts-expect-error: there is no such type
  fencepost.events({ type: ["TxMined"] });
  stream.close();
  console.log(position);
}

export function failed(error: unknown): number {
  if (!(error instanceof FencepostError)) throw error;
  // @ts-expect-error: there is no such code
  if (error.code === "no_such_code") return 0;
  if (error.code === "connection_lost" || error.code === "insufficient_funds") return error.status;
  return error.retryAfter ?? (error.field ?? error.parameter ?? "").length;
}

export function webhook(body: Uint8Array, headers: Record<string, string | string[] | undefined>): string {
  const found: WebhookEvent[] = verifyWebhook(body, headers, ["whsec_a", "whsec_b"], { toleranceSeconds: 60 });
  return found.map((event) => (event.type === "WebhookTest" ? event.data.webhookId : event.subject)).join();
}

export type Tx = AnswerOf<"get", "/api/v1/tx/{txId}">;
export const hashOf = (event: FencepostEvent<"TxSubmitted">): string => event.data.txHash;
