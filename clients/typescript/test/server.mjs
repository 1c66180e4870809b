// A server that answers as a test says, on a free port.
import { createServer } from "node:http";
import { once } from "node:events";
import { Fencepost } from "@fencepost/client";

// `answers`: one function (request, response, body) for each request, in order; the last one answers all that follow.
export async function serve(t, ...answers) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    const { method, url, headers } = request;
    requests.push({ method, url, headers, body: body === "" ? undefined : JSON.parse(body), at: Date.now() });
    const answer = answers[Math.min(requests.length, answers.length) - 1];
    await answer(request, response, body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, requests, client: (options = {}) => new Fencepost({ url, apiKey: "fp_test", ...options }) };
}

export const json = (status, body, headers = {}) => (_, response) => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
};

export const problem = (status, code, more = {}, headers = {}) => (_, response) => {
  response.writeHead(status, { "content-type": "application/problem+json", ...headers });
  response.end(JSON.stringify({ type: "about:blank", title: "", status, detail: `about ${code}`, code, ...more }));
};

// Fencepost has received the request, and its answer is lost.
export const lost = (request) => request.socket.destroy();

// What `Last-Event-ID` beyond the log is answered with.
export const newest = (id) => problem(400, "unknown_event_id", { newest: id });

export const event = (id, type = "TxConfirmed") =>
  `id: ${id}\ndata: ${JSON.stringify({ specversion: "1.0", id: String(id), type, subject: "tx/1", data: { nonce: id } })}\n\n`;

// A stream of these texts. It then ends, or is destroyed, or stays open.
export const stream = (texts, end = "end") => (request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(`retry: 1\n\n${texts.join("")}`, () => {
    if (end === "end") response.end();
    if (end === "destroy") request.socket.destroy();
  });
};

export const transaction = (requestId) => ({
  signer: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
  requestId,
  payload: { to: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", value: "1" },
});
