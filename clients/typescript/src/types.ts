// Types of requests, answers and events, taken from the types that are generated from the OpenAPI document.
import type { components, paths, webhooks } from "./schema.js";

export type Schemas = components["schemas"];
export type Method = "get" | "post" | "put" | "patch" | "delete";

type Operation<M extends Method, P extends keyof paths> = NonNullable<paths[P][M]>;

/** The paths of the API that have this method. `Fencepost.events` reads the stream of events. */
export type PathOf<M extends Method> = Exclude<
  { [P in keyof paths & `/api/${string}`]: paths[P][M] extends { responses: unknown } ? P : never }[keyof paths &
    `/api/${string}`],
  "/api/v1/events"
>;

// The member K of an operation's parameters, or never.
type Parameters<O, K extends "path" | "query" | "header"> = O extends { parameters: { [k in K]?: infer V } }
  ? Exclude<V, undefined>
  : never;
type RequestBody<O> = O extends { requestBody?: infer R } ? NonNullable<R> : never;
type Body<O> = [RequestBody<O>] extends [never]
  ? never
  : RequestBody<O> extends { content: { "application/json": infer B } }
    ? B
    : never;

// A member of the options: absent where the operation has none, optional where everything in it is.
type Member<K extends string, V> = [V] extends [never]
  ? { [k in K]?: never }
  : Record<string, never> extends V
    ? { [k in K]?: V }
    : { [k in K]: V };
type BodyMember<O> = [Body<O>] extends [never]
  ? { body?: never }
  : O extends { requestBody: object }
    ? { body: Body<O> }
    : { body?: Body<O> };

type NamesIn<V> = [V] extends [never] ? never : keyof V; // keyof never is every name

// Only where the operation takes the header: elsewhere a key would not make a request safe to repeat.
type KeyMember<O> = "Idempotency-Key" extends NamesIn<Parameters<O, "header">>
  ? {
      /** The header `Idempotency-Key`, in place of `requestId` or `idempotencyKey` in the body. */
      idempotencyKey?: string | undefined;
    }
  : { idempotencyKey?: never };

export interface RequestOptions {
  /** Gives up: the promise rejects with the signal's reason. The request may have been carried out. */
  signal?: AbortSignal | undefined;
}

export type OptionsOf<M extends Method, P extends PathOf<M>> = RequestOptions &
  KeyMember<Operation<M, P>> &
  Member<"path", Parameters<Operation<M, P>, "path">> &
  Member<"query", Parameters<Operation<M, P>, "query">> &
  BodyMember<Operation<M, P>>;

/** The options may be left out where nothing in them is required. */
export type OptionsArgument<M extends Method, P extends PathOf<M>> =
  RequestOptions extends OptionsOf<M, P> ? [options?: OptionsOf<M, P>] : [options: OptionsOf<M, P>];

type Content<R> = R extends { content: infer C } ? C[keyof C] : undefined;
type Success<R> = { [S in keyof R & (200 | 201 | 202 | 204)]: Content<R[S]> }[keyof R & (200 | 201 | 202 | 204)];

/** The body of a successful answer: JSON, text where the answer is not JSON, or undefined where there is none. */
export type AnswerOf<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { responses: infer R } ? Success<R> : never;

/** The paths whose answer is a page of a list. */
export type ListPath = {
  [P in PathOf<"get">]: AnswerOf<"get", P> extends { items: unknown[]; nextCursor: string | null } ? P : never;
}[PathOf<"get">];
export type ItemOf<P extends ListPath> = AnswerOf<"get", P> extends { items: (infer I)[] } ? I : never;

type Envelope<W> = W extends { post: { requestBody?: { content: { "application/cloudevents+json": infer E } } } }
  ? E
  : never;

/** The types of events: docs/events.md says when each comes and what it carries. */
export type EventType = keyof webhooks;
/** An event as it comes: a CloudEvents 1.0 envelope. `event.type` decides the type of `event.data`. */
export type FencepostEvent<T extends EventType = EventType> = { [K in T]: Envelope<webhooks[K]> }[T];
