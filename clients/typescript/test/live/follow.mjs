// node follow.mjs [AFTER]: prints the id of each event, until it is stopped.
import { Fencepost } from "@fencepost/client";

const { FENCEPOST_URL: url, FENCEPOST_API_KEY: apiKey } = process.env;
const events = new Fencepost({ url, apiKey }).events({
  after: process.argv[2],
  onReconnect: (error, delayMs) => console.error(`${error?.message}; again in ${delayMs} ms`),
});
for await (const { id } of events) console.log(id);
