// The text/event-stream format, as much of it as Fencepost sends.

export interface Message {
  id: string;
  /** Undefined: the message only announces a position. */
  data: string | undefined;
}

/** Takes the stream in pieces, however they are cut. A message whose end has not arrived is not returned. */
export class SseParser {
  /** What the server asked a client to wait before it connects again. */
  retryMs: number | undefined;
  #rest = "";
  #id: string | undefined;
  #data: string[] = [];

  push(piece: string): Message[] {
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop() ?? "";
    const messages: Message[] = [];
    for (const line of lines) {
      const message = this.#line(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (message !== undefined) messages.push(message);
    }
    return messages;
  }

  #line(line: string): Message | undefined {
    if (line === "") return this.#take();
    const colon = line.indexOf(":");
    if (colon === 0) return undefined; // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") this.#id = value;
    else if (name === "data") this.#data.push(value);
    else if (name === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
    return undefined;
  }

  // An empty line ends a message, if there is one.
  #take(): Message | undefined {
    const id = this.#id;
    const data = this.#data.length > 0 ? this.#data.join("\n") : undefined;
    this.#id = undefined;
    this.#data = [];
    return id === undefined ? undefined : { id, data };
  }
}
