// Receives webhooks: verifies the signature, and handles each event once.
//
//   fencepost webhook create http://127.0.0.1:9000/ --type TxConfirmed --type TxFailed     # prints the secret
//   FENCEPOST_WEBHOOK_SECRET=whsec_… PORT=9000 node webhook_receiver.mjs inbox.jsonl
//
// "Handling" an event means here: a line in a file. The line is also how a restart knows what was handled, so there is no
// moment at which one is done and the other is not. With a database, do both in one transaction: insert the event's id
// into a table with a unique key, and do the work.
import { closeSync, fsyncSync, existsSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { WebhookError, verifyWebhook } from "@fencepost/client/webhook";

const MAX_BODY_BYTES = 8 * 1024 * 1024; // more than 100 events, the largest `batch`
const file = process.argv[2] ?? "inbox.jsonl";
// While a secret is replaced, both are given, separated by a comma.
const secrets = (process.env.FENCEPOST_WEBHOOK_SECRET ?? "").split(",");
if (secrets[0] === "") {
  console.error("set FENCEPOST_WEBHOOK_SECRET to the secret of the webhook (whsec_…)");
  process.exit(2);
}

const handled = readHandled();
const inbox = openSync(file, "a");

const server = createServer(async (request, response) => {
  try {
    const body = await readBody(request); // the bytes as they came: the signature is over them
    const events = verifyWebhook(body, request.headers, secrets);
    handle(events.filter((event) => !handled.has(event.id)));
    response.writeHead(204).end();
  } catch (error) {
    const forged = error instanceof WebhookError;
    console.error(forged ? `refused: ${error.code}` : error);
    // Anything but 2xx is sent again later. So an event that could not be stored is not lost.
    response.writeHead(forged ? 400 : 500, { connection: "close" }).end();
  }
});
server.listen(Number(process.env.PORT ?? 9000), "127.0.0.1", () => console.log(`listening on ${server.address().port}`));

// Answer only when the events are safe. Slow work belongs behind this point: Fencepost waits 10 s for the answer.
function handle(events) {
  if (events.length === 0) return;
  writeSync(inbox, events.map((event) => `${JSON.stringify(event)}\n`).join(""));
  fsyncSync(inbox);
  for (const event of events) {
    handled.add(event.id);
    console.log(`${event.id} ${event.type} ${event.subject}`);
  }
}

// The ids in the file. The last line may be cut off by a crash: it was not answered with 204, so it comes again.
function readHandled() {
  if (!existsSync(file)) return new Set();
  const text = readFileSync(file);
  const end = text.lastIndexOf("\n") + 1;
  truncateSync(file, end);
  const lines = text.subarray(0, end).toString().split("\n").slice(0, -1);
  return new Set(lines.map((line) => JSON.parse(line).id));
}

async function readBody(request) {
  const pieces = [];
  let size = 0;
  for await (const piece of request) {
    size += piece.length;
    if (size > MAX_BODY_BYTES) throw new WebhookError("bad_body", "too large");
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    server.close(() => closeSync(inbox));
    server.closeIdleConnections();
  });
}
