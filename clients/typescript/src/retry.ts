// Which requests may be sent again, and when.
import type { FencepostError } from "./errors.js";

const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 10_000;

/**
 * Whether sending the request again cannot do anything twice. `idempotent`: it only reads, or carries a request id or
 * an idempotency key.
 */
export function mayRepeat(error: FencepostError, idempotent: boolean): boolean {
  if (error.code === "cannot_connect") return true; // it was not sent
  if (error.status === 0) return idempotent;
  if (error.code === "outcome_unknown") return idempotent;
  const busy = error.status === 429 || error.status === 503;
  // A 429 or a 503 of Fencepost means that nothing happened. A proxy's may come after the request was forwarded.
  if (error.code !== "unexpected_answer") return busy && error.retryAfter !== undefined;
  return idempotent && (busy || error.status === 502 || error.status === 504);
}

/** Whether the body names the request, so that Fencepost recognizes it when it comes again. */
export function namesItself(body: unknown): boolean {
  if (typeof body !== "object" || body === null) return false;
  const { requestId, idempotencyKey, items } = body as Record<string, unknown>;
  if (Array.isArray(items)) return items.length > 0 && items.every(namesItself);
  return isName(requestId) || isName(idempotencyKey);
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

/** Half of the delay is random, so that clients which failed together do not return together. */
export function backoffMs(attempt: number, firstMs = FIRST_BACKOFF_MS, longestMs = LONGEST_BACKOFF_MS): number {
  const full = Math.min(longestMs, firstMs * 2 ** Math.min(attempt, 16));
  return full / 2 + (Math.random() * full) / 2;
}

/** How long to wait before the next attempt: at least as long as the answer asks. */
export function delayMs(error: FencepostError, attempt: number): number {
  return (error.retryAfter ?? 0) * 1000 + backoffMs(attempt);
}

/** Waits. Rejects with the signal's reason when it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
