// node ethers.mjs URL: deploys an OpenZeppelin timelock, calls it, schedules an operation, and provokes a revert.
import { Contract, ContractFactory, JsonRpcProvider, isCallException } from "ethers";
import { report, timelockController, zeroHash } from "./contracts.mjs";

const provider = new JsonRpcProvider(process.argv[2]);
provider.pollingInterval = 100;
const signer = await provider.getSigner();

const factory = new ContractFactory(timelockController.abi, timelockController.bytecode, signer);
const deployed = await factory.deploy(60, [signer.address], [signer.address], signer.address);
await deployed.waitForDeployment();
const timelock = new Contract(await deployed.getAddress(), timelockController.abi, signer);

const operation = [signer.address, 0n, "0x", zeroHash, zeroHash];
const id = await timelock.hashOperation(...operation);
const scheduled = await timelock.schedule(...operation, 60);
const receipt = await scheduled.wait();

// The second schedule of the same operation reverts with a reason. With a gas limit the client does not estimate, so the
// chain mines the failure; without one, the answer carries the reason.
let revert;
try {
  await timelock.schedule(...operation, 60);
} catch (error) {
  revert = isCallException(error) ? error.reason : String(error);
}
report({
  address: timelock.target,
  delay: await timelock.getMinDelay(),
  status: receipt.status,
  isOperation: await timelock.isOperation(id),
  revert,
});
provider.destroy();
