// The timelocks that the clients deploy, from the packages that carry their bytecode.
import { readFileSync } from "node:fs";

const artifact = (path) => JSON.parse(readFileSync(new URL(`node_modules/${path}`, import.meta.url)));
const hex = (text) => (text.startsWith("0x") ? text : `0x${text}`);

const openZeppelin = artifact("@openzeppelin/contracts/build/contracts/TimelockController.json");
const compound = artifact("@uniswap/governance/build/Timelock.json");

export const timelockController = { abi: openZeppelin.abi, bytecode: hex(openZeppelin.bytecode) };
export const compoundTimelock = { abi: compound.abi, bytecode: hex(compound.bytecode) };
export const day = 86_400n;
export const zeroHash = `0x${"00".repeat(32)}`;

// The last line of the output is what the test reads.
export function report(value) {
  console.log(JSON.stringify(value, (_, v) => (typeof v === "bigint" ? v.toString() : v)));
}
