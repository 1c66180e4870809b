// Signatures of webhooks. In a module of its own: it needs Node's crypto, and the rest of the client does not.
import { createHmac, timingSafeEqual } from "node:crypto";
import type { FencepostEvent } from "./types.js";

/** What `fencepost webhook test` sends. It is in no log. */
export interface WebhookTestEvent {
  specversion: "1.0";
  id: string;
  source: string;
  type: "WebhookTest";
  subject: string;
  time: string;
  datacontenttype: "application/json";
  data: { webhookId: string };
}

export type WebhookEvent = FencepostEvent | WebhookTestEvent;

export type WebhookErrorCode = "missing_header" | "bad_timestamp" | "too_old" | "too_new" | "bad_signature" | "bad_body";

/** The request is not one that Fencepost has just sent: answer 400 and do nothing. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
  readonly code: WebhookErrorCode;

  constructor(code: WebhookErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** `request.headers` of Node, or a `Headers`. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Record<string, string | readonly string[] | undefined>;

export interface VerifyOptions {
  /** How far the request's time may be from now. Default: 300 s. */
  toleranceSeconds?: number;
  /** The current time in milliseconds. Default: the system's clock. */
  now?: () => number;
}

/**
 * Returns the events of a request, after checking that Fencepost signed it with this secret, and recently. It is one
 * event, or several if the webhook has `batch`.
 *
 * `body`: the bytes as they came. A body that was parsed and written again does not verify.
 * `secret`: `whsec_…`, or several while a secret is replaced.
 *
 * An event may come more than once: drop those whose `id` you have handled. Throws WebhookError.
 */
export function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): WebhookEvent[] {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature");
  checkAge(timestamp, options);
  const keys = (typeof secret === "string" ? [secret] : secret).map(keyOf);
  if (!keys.some((key) => isSignedWith(key, `${id}.${timestamp}.`, body, signatures))) {
    throw new WebhookError("bad_signature", "no signature of this request was made with the secret of this webhook");
  }
  return readEvents(body);
}

function header(headers: WebhookHeaders, name: string): string {
  const value = typeof headers.get === "function" ? headers.get(name) : (headers as Record<string, unknown>)[name];
  if (typeof value === "string" && value !== "") return value;
  throw new WebhookError("missing_header", `the request has no header ${name}`);
}

// An attacker who recorded a request cannot send it again later.
function checkAge(timestamp: string, options: VerifyOptions): void {
  if (!/^\d{1,15}$/.test(timestamp)) {
    throw new WebhookError("bad_timestamp", `webhook-timestamp is ${timestamp}, not a number of seconds`);
  }
  const tolerance = options.toleranceSeconds ?? 300;
  const age = Math.floor((options.now ?? Date.now)() / 1000) - Number(timestamp);
  if (age > tolerance) throw new WebhookError("too_old", `the request was signed ${age} s ago`);
  if (age < -tolerance) throw new WebhookError("too_new", `the request was signed ${-age} s in the future`);
}

function keyOf(secret: string): Buffer {
  const text = secret.startsWith("whsec_") ? secret.slice("whsec_".length) : secret;
  const key = Buffer.from(text, "base64");
  if (key.length === 0 || key.toString("base64") !== text) {
    // An error of the receiver, not of the request: a mistyped secret must not look like a forged request.
    throw new TypeError("the secret of the webhook is not whsec_ and base64");
  }
  return key;
}

// During a rotation the header has several signatures, separated by spaces: "v1,<base64> v1,<base64>".
function isSignedWith(key: Buffer, head: string, body: string | Uint8Array, signatures: string): boolean {
  const expected = createHmac("sha256", key).update(head).update(body).digest();
  return signatures.split(" ").some((signature) => {
    if (!signature.startsWith("v1,")) return false;
    const given = Buffer.from(signature.slice("v1,".length), "base64");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

function readEvents(body: string | Uint8Array): WebhookEvent[] {
  try {
    const value: unknown = JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body));
    return (Array.isArray(value) ? value : [value]) as WebhookEvent[];
  } catch (cause) {
    throw new WebhookError("bad_body", "the body is signed, and is not JSON", cause);
  }
}
