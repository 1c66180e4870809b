// The events of Fencepost's log, one after the other, across lost connections.
import { FencepostError } from "./errors.js";
import { backoffMs, sleep } from "./retry.js";
import { SseParser, type Message } from "./sse.js";
import type { EventType, FencepostEvent } from "./types.js";

// The server sends a comment every 15 s when nothing happens.
const SILENCE_MS = 45_000;
const RECONNECT_MS = 1_000;
const LONGEST_RECONNECT_MS = 30_000;

export interface EventOptions<T extends EventType = EventType> {
  /** Only these types. `EventsGap` always comes: events were removed from the log before they could be read. */
  type?: readonly T[];
  /** Only these subjects, such as `tx/0193…`. */
  subject?: readonly string[];
  chain?: readonly (string | number)[];
  signer?: readonly string[];
  /** Only flows of these timelock contracts. */
  contract?: readonly string[];
  /** Only transfers of these guilds. */
  guild?: readonly string[];
  /** Begin after the event with this id; "0": with the oldest of the log. Default: after the newest. */
  after?: string | undefined;
  /** Ends the iteration, without an error. */
  signal?: AbortSignal | undefined;
  /** Called before each new connection: the reason, undefined if the server ended the stream, and the wait. */
  onReconnect?: ((error: FencepostError | undefined, delayMs: number) => void) | undefined;
}

/** How the stream reaches the server. */
export interface EventSource {
  /** The id of the newest event. */
  newest(signal: AbortSignal): Promise<string>;
  /** The stream's body. Fails with a FencepostError. */
  open(query: URLSearchParams, after: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** The error of a connection that broke. */
  broken(cause: unknown): FencepostError;
  /** For how long to try the first connection. */
  patienceMs: number;
}

/**
 * The events, for `for await`. Each comes once and in the order of the log, also when the connection is lost: the
 * stream connects again after the last event that it has handed out.
 *
 * It fails with a FencepostError if the server refuses it (a revoked key, an unknown id), and if the first connection
 * cannot be made. Read the events of one stream in one place.
 */
export class EventStream<T extends EventType = EventType> implements AsyncIterable<FencepostEvent<T | "EventsGap">> {
  readonly #source: EventSource;
  readonly #options: EventOptions<T>;
  readonly #stop = new AbortController();
  #position: string | undefined;
  #wasOpen = false;
  #failures = 0; // in a row
  #reconnectMs = RECONNECT_MS;
  #events: AsyncGenerator<FencepostEvent<T | "EventsGap">, void> | undefined;

  constructor(source: EventSource, options: EventOptions<T>) {
    this.#source = source;
    this.#options = options;
    this.#position = options.after;
    const { signal } = options;
    if (signal?.aborted) this.close();
    signal?.addEventListener("abort", () => this.close(), { once: true, signal: this.#stop.signal });
  }

  /**
   * The id of the last event that was handed out: store it with what you did for that event, and begin `after` it the
   * next time. Undefined before the first connection, if the stream begins with the newest event.
   */
  get lastEventId(): string | undefined {
    return this.#position;
  }

  /** Ends the iteration and the connection. */
  close(): void {
    this.#stop.abort();
  }

  [Symbol.asyncIterator](): AsyncGenerator<FencepostEvent<T | "EventsGap">, void> {
    return (this.#events ??= this.#read());
  }

  async *#read(): AsyncGenerator<FencepostEvent<T | "EventsGap">, void> {
    const stopped = this.#stop.signal;
    const givenUpAt = Date.now() + this.#source.patienceMs;
    try {
      // Without a position, events between a lost connection and the next one would be lost with it.
      this.#position ??= await this.#source.newest(stopped);
      while (!stopped.aborted) {
        const failure = yield* this.#connection();
        const delay = this.#delayMs(failure);
        if (failure !== undefined && (stopped.aborted || !isTemporary(failure))) throw failure;
        if (failure !== undefined && !this.#wasOpen && Date.now() + delay > givenUpAt) throw failure;
        if (stopped.aborted) return;
        this.#options.onReconnect?.(failure, delay);
        await sleep(delay, stopped);
      }
    } catch (error) {
      if (!stopped.aborted) throw error; // an aborted wait or request is how `close` ends the iteration
    } finally {
      this.close();
    }
  }

  // One connection, to its end. Returns why it ended; undefined: the server ended it.
  async *#connection(): AsyncGenerator<FencepostEvent<T | "EventsGap">, FencepostError | undefined> {
    const connection = new AbortController();
    const end = () => connection.abort();
    this.#stop.signal.addEventListener("abort", end, { once: true });
    try {
      for await (const message of this.#messages(connection)) {
        if (!isAfter(message.id, this.#position)) continue;
        this.#position = message.id;
        if (message.data !== undefined) yield parseEvent<T | "EventsGap">(message.data);
      }
      return undefined;
    } catch (error) {
      if (error instanceof FencepostError) return error;
      throw error;
    } finally {
      this.#stop.signal.removeEventListener("abort", end);
      end(); // also when the consumer leaves its loop
    }
  }

  async *#messages(connection: AbortController): AsyncGenerator<Message, void> {
    const opened = this.#source.open(this.#query(), this.#position ?? "", connection.signal);
    const body = await limited(opened, connection, this.#source);
    this.#wasOpen = true;
    const parser = new SseParser();
    const decoder = new TextDecoder();
    const reader = body.getReader();
    for (;;) {
      // The time that the consumer takes for an event does not count as silence.
      const { done, value } = await limited(reader.read(), connection, this.#source);
      if (done) return;
      this.#failures = 0;
      const messages = parser.push(decoder.decode(value, { stream: true }));
      this.#reconnectMs = parser.retryMs ?? this.#reconnectMs;
      yield* messages;
    }
  }

  #query(): URLSearchParams {
    const query = new URLSearchParams();
    const { type, subject, chain, signer, contract, guild } = this.#options;
    for (const [name, values] of Object.entries({ type, subject, chain, signer, contract, guild })) {
      if (values !== undefined && values.length > 0) query.set(name, values.join(","));
    }
    return query;
  }

  #delayMs(failure: FencepostError | undefined): number {
    const backoff = backoffMs(this.#failures++, this.#reconnectMs, LONGEST_RECONNECT_MS);
    return (failure?.retryAfter ?? 0) * 1000 + backoff;
  }
}

// Fails if nothing comes for too long: the other end may be gone without having closed the connection. Turns a broken
// connection into an error.
async function limited<V>(work: Promise<V>, connection: AbortController, source: EventSource): Promise<V> {
  const silence = new FencepostError({ status: 0, code: "timeout", detail: `no byte for ${SILENCE_MS / 1000} s` });
  const timer = setTimeout(() => connection.abort(silence), SILENCE_MS);
  try {
    return await work;
  } catch (error) {
    if (connection.signal.reason === silence) throw silence;
    throw error instanceof FencepostError ? error : source.broken(error);
  } finally {
    clearTimeout(timer);
  }
}

function parseEvent<T extends EventType>(data: string): FencepostEvent<T> {
  try {
    return JSON.parse(data) as FencepostEvent<T>;
  } catch (cause) {
    throw new FencepostError({ status: 200, code: "unexpected_answer", detail: "an event is not JSON", cause });
  }
}

function isTemporary(error: FencepostError): boolean {
  return error.status === 0 || error.status === 408 || error.status === 429 || error.status >= 500;
}

// Ids are decimal digits of up to 64 bits.
function isAfter(id: string, position: string | undefined): boolean {
  return position === undefined || BigInt(id) > BigInt(position);
}
