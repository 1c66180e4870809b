// Requests to Fencepost's API.
import { FencepostError, errorOfAnswer, errorOfFetch } from "./errors.js";
import { EventStream, type EventOptions } from "./events.js";
import { delayMs, mayRepeat, namesItself, sleep } from "./retry.js";
import type {
  AnswerOf, EventType, ItemOf, ListPath, Method, OptionsArgument, OptionsOf, PathOf, RequestOptions,
} from "./types.js";

// The longest `timeout` that the API takes beside `wait`.
const LONGEST_WAIT_MS = 120_000;
// Greater than any id, so the answer names the newest one.
const BEYOND_THE_LOG = "9223372036854775807";

export interface FencepostOptions {
  /** Such as `https://fencepost.example` or `http://127.0.0.1:8080`. */
  url: string;
  apiKey: string;
  /** How long one attempt may take; with `wait` up to two minutes longer. Default: 30 s. */
  timeoutMs?: number;
  /** For how long after its first failure a request that is safe to repeat is repeated. 0: never. Default: 30 s. */
  retryForMs?: number;
  /** Called before each repetition. */
  onRetry?: (error: FencepostError, delayMs: number) => void;
  /** In place of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

/** An answer with its status: a create answers 202 or 201 the first time, 200 for a repetition. */
export interface Answer<B> {
  status: number;
  headers: Headers;
  body: B;
}

interface AnyOptions extends RequestOptions {
  idempotencyKey?: string | undefined;
  path?: Record<string, unknown> | undefined;
  query?: Record<string, unknown> | undefined;
  body?: unknown;
}

/** One Fencepost installation, with one API key. */
export class Fencepost {
  readonly #url: string;
  readonly #apiKey: string;
  readonly #timeoutMs: number;
  readonly #retryForMs: number;
  readonly #onRetry: ((error: FencepostError, delayMs: number) => void) | undefined;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: FencepostOptions) {
    this.#url = options.url.replace(/\/+$/, "");
    this.#apiKey = options.apiKey;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#retryForMs = options.retryForMs ?? 30_000;
    this.#onRetry = options.onRetry;
    this.#fetch = options.fetch ?? globalThis.fetch;
  }

  async get<P extends PathOf<"get">>(path: P, ...[options]: OptionsArgument<"get", P>): Promise<AnswerOf<"get", P>> {
    return (await this.#repeat<AnswerOf<"get", P>>("get", path, options)).body;
  }
  async post<P extends PathOf<"post">>(path: P, ...[options]: OptionsArgument<"post", P>): Promise<AnswerOf<"post", P>> {
    return (await this.#repeat<AnswerOf<"post", P>>("post", path, options)).body;
  }
  async put<P extends PathOf<"put">>(path: P, ...[options]: OptionsArgument<"put", P>): Promise<AnswerOf<"put", P>> {
    return (await this.#repeat<AnswerOf<"put", P>>("put", path, options)).body;
  }
  async patch<P extends PathOf<"patch">>(
    path: P,
    ...[options]: OptionsArgument<"patch", P>
  ): Promise<AnswerOf<"patch", P>> {
    return (await this.#repeat<AnswerOf<"patch", P>>("patch", path, options)).body;
  }
  async delete<P extends PathOf<"delete">>(
    path: P,
    ...[options]: OptionsArgument<"delete", P>
  ): Promise<AnswerOf<"delete", P>> {
    return (await this.#repeat<AnswerOf<"delete", P>>("delete", path, options)).body;
  }

  /** Like the methods above, with the status and the headers of the answer. */
  request<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...[options]: OptionsArgument<M, P>
  ): Promise<Answer<AnswerOf<M, P>>> {
    return this.#repeat<AnswerOf<M, P>>(method, path, options);
  }

  /** All items of a list, page after page. */
  async *list<P extends ListPath>(path: P, options?: OptionsOf<"get", P>): AsyncGenerator<ItemOf<P>, void> {
    const given = (options ?? {}) as AnyOptions;
    let cursor: string | null = null;
    do {
      const query: Record<string, unknown> = cursor === null ? { ...given.query } : { ...given.query, cursor };
      const page: Answer<{ items: ItemOf<P>[]; nextCursor: string | null }> = await this.#repeat("get", path, {
        ...given,
        query,
      });
      yield* page.body.items;
      cursor = page.body.nextCursor;
    } while (cursor !== null);
  }

  /** The events of the log as they happen, or from any position that the log still has. */
  events<T extends EventType = EventType>(options: EventOptions<T> = {}): EventStream<T> {
    return new EventStream<T>(
      {
        newest: (signal) => this.newestEventId({ signal }),
        open: (query, after, signal) => this.#openStream(query, after, signal),
        broken: (cause) => errorOfFetch(cause, this.#url),
        patienceMs: this.#retryForMs,
      },
      options,
    );
  }

  /**
   * The id of the newest event that this key could read. To miss nothing of what a request causes: take this id, send
   * the request, read `events({ after: id })`.
   */
  async newestEventId(options: RequestOptions = {}): Promise<string> {
    // The API has no route for it. A position that the log has not reached is refused, and the refusal names the newest.
    const url = `${this.#url}/api/v1/events?follow=false&lastEventId=${BEYOND_THE_LOG}`;
    try {
      await this.#repeating(true, options.signal, () => this.#once("get", url, options, this.#timeoutMs));
    } catch (error) {
      const newest = error instanceof FencepostError && error.code === "unknown_event_id" && error.problem["newest"];
      if (typeof newest === "string") return newest;
      throw error;
    }
    throw new FencepostError({ status: 200, code: "unexpected_answer", detail: `${url} was not refused` });
  }

  #repeat<B>(method: Method, path: string, options: object | undefined): Promise<Answer<B>> {
    const given = (options ?? {}) as AnyOptions;
    const idempotent = method === "get" || given.idempotencyKey !== undefined || namesItself(given.body);
    const timeoutMs = this.#timeoutMs + (given.query?.["wait"] === undefined ? 0 : LONGEST_WAIT_MS);
    const url = this.#url + withParameters(path, given);
    return this.#repeating(idempotent, given.signal, () => this.#once<B>(method, url, given, timeoutMs));
  }

  async #repeating<R>(idempotent: boolean, signal: AbortSignal | undefined, once: () => Promise<R>): Promise<R> {
    let end: number | undefined;
    for (let attempt = 0; ; ++attempt) {
      try {
        return await once();
      } catch (error) {
        if (!(error instanceof FencepostError) || !mayRepeat(error, idempotent)) throw error;
        const delay = delayMs(error, attempt);
        // Counted from the first failure: an attempt alone may last longer than retryForMs.
        end ??= Date.now() + this.#retryForMs;
        if (Date.now() + delay > end) throw error;
        this.#onRetry?.(error, delay);
        await sleep(delay, signal);
      }
    }
  }

  async #once<B>(method: Method, url: string, options: AnyOptions, timeoutMs: number): Promise<Answer<B>> {
    const { body, signal } = options;
    const headers: Record<string, string> = { authorization: `Bearer ${this.#apiKey}` };
    if (options.idempotencyKey !== undefined) headers["idempotency-key"] = options.idempotencyKey;
    if (body !== undefined) headers["content-type"] = "application/json";
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    const timer = setTimeout(stop, timeoutMs);
    signal?.addEventListener("abort", stop, { once: true });
    try {
      signal?.throwIfAborted();
      const response = await this.#fetch(url, {
        method: method.toUpperCase(),
        headers,
        signal: attempt.signal,
        redirect: "manual", // the API has none, and the key must not go elsewhere
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw errorOfAnswer(response, text);
      return { status: response.status, headers: response.headers, body: readBody(response, text) as B };
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (error instanceof FencepostError) throw error;
      if (!attempt.signal.aborted) throw errorOfFetch(error, this.#url);
      const detail = `no answer within ${timeoutMs} ms`;
      throw new FencepostError({ status: 0, code: "timeout", detail, cause: error });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  async #openStream(query: URLSearchParams, after: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const filters = query.toString();
    let response: Response;
    try {
      response = await this.#fetch(`${this.#url}/api/v1/events${filters === "" ? "" : "?"}${filters}`, {
        headers: { authorization: `Bearer ${this.#apiKey}`, accept: "text/event-stream", "last-event-id": after },
        signal,
        redirect: "manual",
      });
      if (!response.ok) throw errorOfAnswer(response, await response.text());
    } catch (error) {
      throw error instanceof FencepostError ? error : errorOfFetch(error, this.#url);
    }
    if (response.body !== null && response.headers.get("content-type")?.startsWith("text/event-stream")) {
      return response.body;
    }
    throw new FencepostError({ status: response.status, code: "unexpected_answer", detail: "not a stream of events" });
  }
}

function withParameters(path: string, options: AnyOptions): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(options.path?.[name])));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== undefined && value !== null) query.set(name, String(value));
  }
  const text = query.toString();
  return text === "" ? filled : `${filled}?${text}`;
}

function readBody(response: Response, text: string): unknown {
  if (text === "") return undefined;
  if (!response.headers.get("content-type")?.includes("json")) return text;
  try {
    return JSON.parse(text);
  } catch (cause) {
    const detail = "the answer is not JSON";
    throw new FencepostError({ status: response.status, code: "unexpected_answer", detail, cause });
  }
}
