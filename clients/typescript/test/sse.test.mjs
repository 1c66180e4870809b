import assert from "node:assert/strict";
import { test } from "node:test";
import { SseParser } from "../dist/sse.js";

const text = 'retry: 1500\n\n: keep-alive\n\nid: 7\ndata: {"a":1}\n\nid: 1007\n\nid: 1008\r\ndata: x\r\ndata:y\r\n\r\nid: 1009\ndata: z\n';
const expected = [
  { id: "7", data: '{"a":1}' },
  { id: "1007", data: undefined },
  { id: "1008", data: "x\ny" },
];

test("messages are the same wherever the stream is cut, and one without its end is not returned", () => {
  for (let size = 1; size <= text.length; ++size) {
    const parser = new SseParser();
    const messages = [];
    for (let at = 0; at < text.length; at += size) messages.push(...parser.push(text.slice(at, at + size)));
    assert.deepEqual(messages, expected, `pieces of ${size}`);
    assert.equal(parser.retryMs, 1500);
  }
});
