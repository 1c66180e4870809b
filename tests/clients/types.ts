// What a program may say with the types generated from api/openapi.json, and what it may not: each @ts-expect-error is
// an error of the compiler if the line below it is none. tests/typescript_test.cpp compiles it.
import type { components, operations } from "./fencepost.js";

type Schemas = components["schemas"];

// Metadata is any JSON object.
export const transfer: Schemas["CreateTransfer"] = {
  guildId: "7",
  initiatorId: "1",
  targetId: "2",
  amount: "40",
  metadata: { order: 17, tags: ["home", { nested: null }], paid: true },
  maxRetries: null,
};
export function orderOf(made: Schemas["Transfer"]): number {
  const order = made.metadata["order"];
  return typeof order === "number" ? order : 0;
}
// @ts-expect-error: an array is no metadata
export const noObject: Schemas["CreateTransfer"]["metadata"] = [1, 2];
// @ts-expect-error: a guild is named
export const noGuild: Schemas["CreateTransfer"] = { initiatorId: "1", targetId: "2", amount: "40" };
// @ts-expect-error: there is no such member
export const misspelt: Schemas["Payload"] = { gasLimit: "21000" };

// A receipt, its logs, the blocks above it, the fees of each attempt.
export function summary(tx: Schemas["TxWithAttempts"]): string[] {
  const gas: bigint = BigInt(tx.receipt?.gasUsed ?? "0x0");
  const contract: string | null | undefined = tx.receipt?.contractAddress;
  const topics: string[] = (tx.receipt?.logs ?? []).map((log) => log.topics[0] ?? log.address);
  const blocks: number[] = (tx.confirmations ?? []).map((block) => block.blockNumber);
  const caps: bigint[] = tx.attempts.map((attempt) => BigInt(attempt.fees?.maxFeePerGas ?? attempt.fees?.gasPrice ?? 0));
  return [`${gas} ${contract} ${topics} ${blocks} ${caps}`, tx.attempts[0]?.message ?? ""];
}

// States and reasons are closed lists.
export function advice(tx: Schemas["ManagedTx"]): string {
  if (tx.state === "STUCK" && tx.subState === "insufficient_funds") return "fund the signer";
  // @ts-expect-error: there is no such state
  if (tx.state === "MINED") return "";
  // @ts-expect-error: there is no such reason
  if (tx.subState === "no_money") return "";
  return "";
}

// Errors: the code is a closed list; further members are text.
export function again(problem: Schemas["Problem"]): boolean {
  const status: number = problem.status;
  const field: string | undefined = problem.field;
  // @ts-expect-error: there is no such code
  if (problem.code === "no_such_code") return false;
  return status === 503 || problem.code === "rate_limited" || field === undefined;
}

// Events by type, as a stream or a webhook delivers them, and as the log of one transaction lists them.
export function told(event: Schemas["Event"]): string | null {
  switch (event.type) {
    case "TxConfirmed": {
      const last = event.data.confirmations.at(-1);
      return `${event.data.txHash} ${event.data.nonce} ${last?.blockHash}`;
    }
    case "TxFailed": {
      const taken: string | undefined = event.data.takenBy?.txHash;
      const reason: Schemas["TxReason"] = event.data.reason;
      return reason === "reverted" ? "reverted" : (taken ?? null);
    }
    case "FlowStatusChanged":
      return event.data.statusTo === "ready" ? event.data.flowId : null;
    case "TransferDenied":
      return event.data.reason === "transfer_cancelled" ? event.data.transferId : null;
    case "EventsGap":
      return `${event.data.from} to ${event.data.to}`;
    // @ts-expect-error: there is no such type
    case "TxMined":
      return null;
    default:
      return event.subject;
  }
}
export function listed(page: Schemas["TxEvents"]): string[] {
  return page.items.flatMap((event) => (event.type === "TxSubmitted" ? [event.data.txHash] : []));
}

// Requests: queries and bodies by operation.
export const stream: operations["streamEvents"]["parameters"]["query"] = { type: ["TxConfirmed", "TxFailed"], chain: ["1"] };
export const wait: operations["createTx"]["parameters"]["query"] = { wait: "confirmed", timeout: "1m" };
export type Created = operations["createTx"]["responses"][202]["content"]["application/json"];
export const stateOf = (tx: Created): Schemas["TxState"] => tx.state;
