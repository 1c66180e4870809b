// Errors of Fencepost's API, and of the connection to it.
import type { components } from "./schema.js";

/** The codes of the API: docs/errors.md says what each means and what to do. */
export type ErrorCode = components["schemas"]["ErrorCode"];

/**
 * Codes of this client, for requests that got no answer of Fencepost:
 * - `cannot_connect`: no connection, so the request was not sent
 * - `connection_lost`: the connection ended before the answer
 * - `timeout`: no answer within `timeoutMs`
 * - `unexpected_answer`: an answer that is not Fencepost's, for example of a proxy
 */
export type ClientErrorCode = "cannot_connect" | "connection_lost" | "timeout" | "unexpected_answer";

interface Facts {
  status: number;
  code: ErrorCode | ClientErrorCode;
  detail: string;
  retryAfter?: number | undefined;
  problem?: Record<string, unknown>;
  cause?: unknown;
}

/** A request that failed. Programs look at `code`; `message` is for people. */
export class FencepostError extends Error {
  override readonly name = "FencepostError";
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  readonly code: ErrorCode | ClientErrorCode;
  /** A sentence for people. Its words may change. */
  readonly detail: string;
  /** The member of the body that is wrong, such as `payload.gas`. */
  readonly field: string | undefined;
  /** The parameter of the path or the query that is wrong. */
  readonly parameter: string | undefined;
  /** After how many seconds a retry may succeed; undefined: a retry does not help, or there was no answer. */
  readonly retryAfter: number | undefined;
  /** The id of this HTTP request in Fencepost's log. */
  readonly httpRequestId: string | undefined;
  /** All members of the problem document, such as `revertReason` of `would_revert`. Empty if there was none. */
  readonly problem: Readonly<Record<string, unknown>>;

  constructor(facts: Facts) {
    super(`${facts.code}: ${facts.detail}`, facts.cause === undefined ? undefined : { cause: facts.cause });
    const problem = facts.problem ?? {};
    this.status = facts.status;
    this.code = facts.code;
    this.detail = facts.detail;
    this.retryAfter = facts.retryAfter;
    this.problem = problem;
    this.field = text(problem["field"]);
    this.parameter = text(problem["parameter"]);
    this.httpRequestId = text(problem["httpRequestId"]);
  }

  /**
   * True if a request that changes something may have been carried out all the same. Send the same request again, with
   * the same `requestId` or `idempotencyKey`. False: nothing happened.
   */
  get outcomeUnknown(): boolean {
    switch (this.code) {
      case "outcome_unknown":
      case "internal":
      case "connection_lost":
      case "timeout":
      case "unexpected_answer":
        return true;
      default:
        return false;
    }
  }
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The error in an answer that is not a success. */
export function errorOfAnswer(response: Response, body: string): FencepostError {
  const status = response.status;
  const retryAfter = seconds(response.headers.get("retry-after"));
  const problem = readObject(body);
  const code = text(problem?.["code"]);
  if (problem === undefined || code === undefined) {
    const detail = `HTTP ${status} that is not Fencepost's: ${body.slice(0, 200)}`;
    return new FencepostError({ status, code: "unexpected_answer", detail, retryAfter });
  }
  const detail = text(problem["detail"]) ?? response.statusText;
  return new FencepostError({ status, code: code as ErrorCode, detail, retryAfter, problem });
}

/** The error of a `fetch` that failed. */
export function errorOfFetch(cause: unknown, url: string): FencepostError {
  const reasons = reasonsOf(cause);
  const code = reasons.every(isBeforeSending) ? "cannot_connect" : "connection_lost";
  const detail = `${url}: ${String(reasons[0]?.message || cause)}`;
  return new FencepostError({ status: 0, code, detail, cause });
}

interface Reason {
  cause?: unknown;
  errors?: unknown[];
  code?: unknown;
  syscall?: unknown;
  message?: unknown;
}

// fetch hides the reason in `cause`; several attempts to connect (IPv6, IPv4) are in `errors`.
function reasonsOf(error: unknown): (Reason | undefined)[] {
  let at = error as Reason | undefined;
  while (at?.cause !== undefined) at = at.cause as Reason;
  return at?.errors?.length ? (at.errors as Reason[]) : [at];
}

// The code alone does not say it: EHOSTUNREACH and ENETUNREACH also end connections that have carried a request.
function isBeforeSending(reason: Reason | undefined): boolean {
  return ["connect", "getaddrinfo"].includes(String(reason?.syscall)) || reason?.code === "UND_ERR_CONNECT_TIMEOUT";
}

// Fencepost and most proxies send seconds; a date is the other form of the header.
function seconds(header: string | null): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header)) return Number(header);
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1000));
}

function readObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // a page of a proxy
  }
}
