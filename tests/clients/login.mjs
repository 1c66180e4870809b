// node login.mjs ethers|viem|safe KEY DOMAIN URI CHAIN_ID NONCE [RPC_URL]: makes the message of a login and signs it, as
// that library does. `safe` deploys a Safe on the chain whose only owner has the key, and logs in as the Safe.
import { readFileSync } from "node:fs";
import { Contract, ContractFactory, Interface, JsonRpcProvider, NonceManager, Wallet, hashMessage } from "ethers";
import { privateKeyToAccount } from "viem/accounts";
import { createSiweMessage } from "viem/siwe";
import { report } from "./contracts.mjs";

const [, , library, key, domain, uri, chainId, nonce, rpcUrl] = process.argv;

// As the specification's template has it.
function messageOf(address) {
  const issuedAt = new Date().toISOString();
  return (
    `${domain} wants you to sign in with your Ethereum account:\n${address}\n\nSign in to Fencepost.\n\n` +
    `URI: ${uri}\nVersion: 1\nChain ID: ${chainId}\nNonce: ${nonce}\nIssued At: ${issuedAt}`
  );
}

const artifact = (path) =>
  JSON.parse(
    readFileSync(new URL(`node_modules/@safe-global/safe-smart-account/build/artifacts/contracts/${path}`, import.meta.url)),
  );

async function deploySafe(owner, provider) {
  const payer = new NonceManager(owner.connect(provider));
  const deploy = async (path) => {
    const { abi, bytecode } = artifact(path);
    const deployed = await new ContractFactory(abi, bytecode, payer).deploy();
    await deployed.waitForDeployment();
    return deployed.getAddress();
  };
  const singleton = await deploy("Safe.sol/Safe.json");
  const handler = await deploy("handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler.json");
  const factoryAddress = await deploy("proxies/SafeProxyFactory.sol/SafeProxyFactory.json");
  const none = `0x${"00".repeat(20)}`;
  const setup = new Interface(artifact("Safe.sol/Safe.json").abi).encodeFunctionData("setup", [
    [owner.address], 1, none, "0x", handler, none, 0, none,
  ]);
  const factory = new Contract(factoryAddress, artifact("proxies/SafeProxyFactory.sol/SafeProxyFactory.json").abi, payer);
  const safe = await factory.createProxyWithNonce.staticCall(singleton, setup, 1);
  await (await factory.createProxyWithNonce(singleton, setup, 1)).wait();
  return safe;
}

if (library === "ethers") {
  const wallet = new Wallet(key);
  const message = messageOf(wallet.address);
  report({ address: wallet.address, message, signature: await wallet.signMessage(message) });
} else if (library === "viem") {
  const account = privateKeyToAccount(key);
  const message = createSiweMessage({
    address: account.address, domain, uri, chainId: Number(chainId), nonce, version: "1",
    expirationTime: new Date(Date.now() + 60_000),
  });
  report({ address: account.address, message, signature: await account.signMessage({ message }) });
} else {
  const owner = new Wallet(key);
  const provider = new JsonRpcProvider(rpcUrl);
  provider.pollingInterval = 50;
  const safe = await deploySafe(owner, provider);
  const message = messageOf(safe);
  const signature = await owner.signTypedData(
    { chainId: Number(chainId), verifyingContract: safe },
    { SafeMessage: [{ name: "message", type: "bytes" }] },
    { message: hashMessage(message) },
  );
  report({ address: safe, message, signature });
  provider.destroy();
}
