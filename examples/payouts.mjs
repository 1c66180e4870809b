// Pays each line of a file once, and waits until every payment is final.
//
//   export FENCEPOST_URL=http://127.0.0.1:8080 FENCEPOST_API_KEY=fp_…    # scopes tx:read and tx:write
//   node payouts.mjs 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 payouts.csv
//
// Kill it at any moment and start it again, here or on another machine: it stores nothing, and makes no payment twice.
// The id of a payout is its request id, and Fencepost makes one transaction for a request id, however often the request
// comes. So use an id for one payout only, across all files: the number of the invoice, for example.
import { readFile } from "node:fs/promises";
import { Fencepost, FencepostError } from "@fencepost/client";

const [signer, file] = process.argv.slice(2);
const { FENCEPOST_URL: url, FENCEPOST_API_KEY: apiKey } = process.env;
if (!signer || !file || !url || !apiKey) {
  console.error("usage: FENCEPOST_URL=… FENCEPOST_API_KEY=… node payouts.mjs SIGNER FILE.csv|FILE.json");
  process.exit(2);
}

const payouts = readPayouts(await readFile(file, "utf8"));
const fencepost = new Fencepost({
  url,
  apiKey,
  onRetry: (error, delayMs) => console.error(`${error.message}; again in ${Math.round(delayMs)} ms`),
});

// Where the log of events ends now. Every event that the creates below cause comes after it, so none can be missed.
const begin = await fencepost.newestEventId();

const open = new Map(); // txId → payout
let failed = 0;
for (const payout of payouts) {
  try {
    const tx = await fencepost.post("/api/v1/tx", {
      body: { signer, requestId: `payout-${payout.id}`, payload: { to: payout.to, value: payout.wei } },
    });
    open.set(tx.txId, payout);
    console.log(`${payout.id} accepted as ${tx.txId}`);
    settle(tx.txId, tx.state, tx.subState); // after a restart it may have ended long ago
  } catch (error) {
    // Refused, and nothing happened: a wrong address, too little money, an id that was used for another payout. Any other
    // error ends the program, and the next start goes on.
    if (!(error instanceof FencepostError) || ![400, 409, 422].includes(error.status)) throw error;
    ++failed;
    console.log(`${payout.id} refused: ${error.message}`);
  }
}

if (open.size > 0) await waitForTheRest();
console.log(`${payouts.length - failed} of ${payouts.length} paid`);
process.exitCode = failed === 0 ? 0 : 1;

async function waitForTheRest() {
  const events = fencepost.events({
    after: begin,
    signer: [signer.toLowerCase()],
    type: ["TxConfirmed", "TxFailed", "TxStuck"],
    onReconnect: (error) => console.error(`events: ${error?.message ?? "the stream has ended"}; connecting again`),
  });
  for await (const event of events) {
    switch (event.type) {
      case "TxConfirmed":
        settle(event.data.txId, "CONFIRMED");
        break;
      case "TxFailed":
        settle(event.data.txId, "FAILED_FINAL", event.data.reason);
        break;
      case "TxStuck": // it may still be paid: never pay it again under another id
        if (open.has(event.data.txId)) console.log(`${open.get(event.data.txId).id} waits: ${event.data.reason}`);
        break;
      case "EventsGap": // the program was suspended for longer than the log goes back: ask instead
        for (const txId of open.keys()) {
          const tx = await fencepost.get("/api/v1/tx/{txId}", { path: { txId } });
          settle(txId, tx.state, tx.subState);
        }
    }
    if (open.size === 0) return; // leaving the loop closes the stream
  }
}

// Only CONFIRMED means paid: a transaction in a block may still be undone by a reorganization.
function settle(txId, state, reason) {
  const payout = open.get(txId);
  if (payout === undefined || (state !== "CONFIRMED" && state !== "FAILED_FINAL")) return;
  open.delete(txId);
  if (state === "FAILED_FINAL") ++failed;
  console.log(`${payout.id} ${state === "CONFIRMED" ? "paid" : `failed: ${reason}`}`);
}

// A JSON list of {"id", "to", "wei"}, or CSV with these columns: plain values, without quotes.
function readPayouts(text) {
  const rows = text.trimStart().startsWith("[") ? JSON.parse(text) : readCsv(text);
  const ids = new Set();
  for (const { id, to, wei } of rows) {
    if (!id || !to || !/^\d+$/.test(wei ?? "")) throw new Error(`not a payout: ${JSON.stringify({ id, to, wei })}`);
    if (ids.has(id)) throw new Error(`the id ${id} is there twice`); // the second one would be taken for the first
    ids.add(id);
  }
  return rows;
}

function readCsv(text) {
  const [head, ...lines] = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const names = head.split(",").map((name) => name.trim());
  return lines.map((line) => {
    const cells = line.split(",");
    return Object.fromEntries(names.map((name, i) => [name, cells[i]?.trim()]));
  });
}
