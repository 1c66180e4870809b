// Verifies one request with the reference library of the Standard Webhooks specification, and prints the event's type.
//   node verify_webhook.mjs '{"secret": "whsec_…", "body": "…", "headers": {…}}'
import { Webhook } from "standardwebhooks";

const { secret, body, headers } = JSON.parse(process.argv[2]);
const event = new Webhook(secret).verify(body, headers);
console.log(event.type);
