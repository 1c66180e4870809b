export { Fencepost, type Answer, type FencepostOptions } from "./client.js";
export { FencepostError, type ClientErrorCode, type ErrorCode } from "./errors.js";
export { EventStream, type EventOptions } from "./events.js";
export type { components, operations, paths, webhooks } from "./schema.js";
export type {
  AnswerOf, EventType, FencepostEvent, ItemOf, ListPath, Method, OptionsOf, PathOf, RequestOptions, Schemas,
} from "./types.js";
