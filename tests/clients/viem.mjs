// node viem.mjs URL CHAIN_ID: deploys Compound's timelock, calls it, queues a transaction, and provokes a revert.
import { createPublicClient, createWalletClient, defineChain, http, BaseError, ContractFunctionRevertedError } from "viem";
import { compoundTimelock, day, report } from "./contracts.mjs";

const [, , url, chainId] = process.argv;
const chain = defineChain({
  id: Number(chainId),
  name: "test",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const transport = http(url, { timeout: 30_000 });
const reader = createPublicClient({ chain, transport, pollingInterval: 100 });
const wallet = createWalletClient({ chain, transport });
const [account] = await wallet.requestAddresses();

const deployment = await wallet.deployContract({ ...compoundTimelock, account, args: [account, 2n * day] });
const { contractAddress: address } = await reader.waitForTransactionReceipt({ hash: deployment });
const contract = { address, abi: compoundTimelock.abi };

const { timestamp } = await reader.getBlock();
const queued = { ...contract, account, functionName: "queueTransaction" };
const args = [account, 0n, "", "0x", timestamp + 3n * day];
const { result: id } = await reader.simulateContract({ ...queued, args });
const hash = await wallet.writeContract({ ...queued, args });
const { status } = await reader.waitForTransactionReceipt({ hash });

let revert;
try {
  // No gas limit: Fencepost estimates, and answers with the revert.
  await wallet.writeContract({ ...queued, args: [account, 0n, "", "0x", 1n] });
} catch (error) {
  const cause = error instanceof BaseError && error.walk((e) => e instanceof ContractFunctionRevertedError);
  revert = cause ? cause.reason : String(error);
}
report({
  address,
  delay: await reader.readContract({ ...contract, functionName: "delay" }),
  status,
  queued: await reader.readContract({ ...contract, functionName: "queuedTransactions", args: [id] }),
  revert,
});
