// node parallel.mjs URL COUNT [PRIVATE_KEY]: sends COUNT transfers at once from one signer, and says what became of them.
// Without a key the signer is the endpoint's first account; with one, ethers signs and chooses the nonces itself.
import { JsonRpcProvider, Wallet } from "ethers";
import { report } from "./contracts.mjs";

const [, , url, count, key] = process.argv;
const provider = new JsonRpcProvider(url);
provider.pollingInterval = 200;
const signer = key ? new Wallet(key, provider) : await provider.getSigner();
const to = "0x000000000000000000000000000000000000dEaD";
const before = await provider.getTransactionCount(signer.address);

const sends = Array.from({ length: Number(count) }, (_, i) => signer.sendTransaction({ to, value: BigInt(i + 1) }));
const settled = await Promise.allSettled(sends);
const accepted = settled.filter((s) => s.status === "fulfilled").map((s) => s.value);
const errors = {};
for (const { reason } of settled.filter((s) => s.status === "rejected")) {
  const name = reason.code === "UNKNOWN_ERROR" ? (reason.error?.message ?? reason.message) : reason.code;
  errors[name] = (errors[name] ?? 0) + 1;
}
await Promise.allSettled(accepted.map((tx) => tx.wait(1, 60_000)));
report({
  accepted: accepted.length,
  hashes: new Set(accepted.map((tx) => tx.hash)).size,
  nonces: new Set(accepted.map((tx) => tx.nonce)).size,
  mined: (await provider.getTransactionCount(signer.address)) - before,
  errors,
});
provider.destroy();
