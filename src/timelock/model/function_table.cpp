#include "timelock/model/function_table.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace fencepost::timelock {
namespace {

// A name that differs between contracts with the same signature (ERC-20 and ERC-721) is the more general one.
constexpr std::string_view kBuiltin[] = {
    // ERC-20 and its common extensions
    "transfer(address to,uint256 value)",
    "approve(address spender,uint256 value)",
    "transferFrom(address from,address to,uint256 value)",
    "increaseAllowance(address spender,uint256 addedValue)",
    "decreaseAllowance(address spender,uint256 subtractedValue)",
    "permit(address owner,address spender,uint256 value,uint256 deadline,uint8 v,bytes32 r,bytes32 s)",
    "mint(address to,uint256 value)",
    "burn(uint256 value)",
    "burnFrom(address account,uint256 value)",
    "delegate(address delegatee)",
    // Wrapped native coin
    "deposit()",
    "withdraw(uint256 value)",
    // ERC-721 and ERC-1155
    "safeTransferFrom(address from,address to,uint256 tokenId)",
    "safeTransferFrom(address from,address to,uint256 tokenId,bytes data)",
    "setApprovalForAll(address operator,bool approved)",
    "safeTransferFrom(address from,address to,uint256 id,uint256 value,bytes data)",
    "safeBatchTransferFrom(address from,address to,uint256[] ids,uint256[] values,bytes data)",
    // Ownable, Ownable2Step
    "transferOwnership(address newOwner)",
    "renounceOwnership()",
    "acceptOwnership()",
    // AccessControl and its default admin
    "grantRole(bytes32 role,address account)",
    "revokeRole(bytes32 role,address account)",
    "renounceRole(bytes32 role,address account)",
    "beginDefaultAdminTransfer(address newAdmin)",
    "cancelDefaultAdminTransfer()",
    "acceptDefaultAdminTransfer()",
    "changeDefaultAdminDelay(uint48 newDelay)",
    "rollbackDefaultAdminDelay()",
    // Pausable
    "pause()",
    "unpause()",
    // Proxies: UUPS, transparent, beacons, ProxyAdmin
    "upgradeTo(address newImplementation)",
    "upgradeToAndCall(address newImplementation,bytes data)",
    "changeAdmin(address newAdmin)",
    "upgrade(address proxy,address implementation)",
    "upgradeAndCall(address proxy,address implementation,bytes data)",
    "changeProxyAdmin(address proxy,address newAdmin)",
    // Compound's Timelock
    "setDelay(uint256 delay)",
    "setPendingAdmin(address pendingAdmin)",
    "acceptAdmin()",
    "queueTransaction(address target,uint256 value,string signature,bytes data,uint256 eta)",
    "cancelTransaction(address target,uint256 value,string signature,bytes data,uint256 eta)",
    "executeTransaction(address target,uint256 value,string signature,bytes data,uint256 eta)",
    // OpenZeppelin's TimelockController
    "updateDelay(uint256 newDelay)",
    "schedule(address target,uint256 value,bytes data,bytes32 predecessor,bytes32 salt,uint256 delay)",
    "scheduleBatch(address[] targets,uint256[] values,bytes[] payloads,bytes32 predecessor,bytes32 salt,uint256 delay)",
    "cancel(bytes32 id)",
    "execute(address target,uint256 value,bytes payload,bytes32 predecessor,bytes32 salt)",
    "executeBatch(address[] targets,uint256[] values,bytes[] payloads,bytes32 predecessor,bytes32 salt)",
    // Governor Alpha and Bravo
    "_setVotingDelay(uint256 newVotingDelay)",
    "_setVotingPeriod(uint256 newVotingPeriod)",
    "_setProposalThreshold(uint256 newProposalThreshold)",
    "_setWhitelistAccountExpiration(address account,uint256 expiration)",
    "_setWhitelistGuardian(address account)",
    "_initiate(address governorAlpha)",
    "__acceptAdmin()",
    "__abdicate()",
    "__queueSetTimelockPendingAdmin(address newPendingAdmin,uint256 eta)",
    "__executeSetTimelockPendingAdmin(address newPendingAdmin,uint256 eta)",
    // OpenZeppelin's Governor; the first types are those of version 5, the second those of version 4
    "setVotingDelay(uint48 newVotingDelay)",
    "setVotingDelay(uint256 newVotingDelay)",
    "setVotingPeriod(uint32 newVotingPeriod)",
    "setVotingPeriod(uint256 newVotingPeriod)",
    "setProposalThreshold(uint256 newProposalThreshold)",
    "updateQuorumNumerator(uint256 newQuorumNumerator)",
    "setLateQuorumVoteExtension(uint48 newVoteExtension)",
    "setLateQuorumVoteExtension(uint64 newVoteExtension)",
    "updateTimelock(address newTimelock)",
    "relay(address target,uint256 value,bytes data)",
    // Compound's Unitroller, Comptroller and CToken
    "_setPendingImplementation(address newPendingImplementation)",
    "_acceptImplementation()",
    "_setPendingAdmin(address newPendingAdmin)",
    "_acceptAdmin()",
    "_become(address unitroller)",
    "_setImplementation(address implementation)",
    "_setImplementation(address implementation,bool allowResign,bytes becomeImplementationData)",
    "_setPriceOracle(address newOracle)",
    "_setCloseFactor(uint256 newCloseFactorMantissa)",
    "_setCollateralFactor(address cToken,uint256 newCollateralFactorMantissa)",
    "_setLiquidationIncentive(uint256 newLiquidationIncentiveMantissa)",
    "_supportMarket(address cToken)",
    "_setMarketBorrowCaps(address[] cTokens,uint256[] newBorrowCaps)",
    "_setBorrowCapGuardian(address newBorrowCapGuardian)",
    "_setPauseGuardian(address newPauseGuardian)",
    "_setMintPaused(address cToken,bool state)",
    "_setBorrowPaused(address cToken,bool state)",
    "_setTransferPaused(bool state)",
    "_setSeizePaused(bool state)",
    "_grantComp(address recipient,uint256 amount)",
    "_setCompSpeed(address cToken,uint256 compSpeed)",
    "_setCompSpeeds(address[] cTokens,uint256[] supplySpeeds,uint256[] borrowSpeeds)",
    "_setContributorCompSpeed(address contributor,uint256 compSpeed)",
    "_setComptroller(address newComptroller)",
    "_setReserveFactor(uint256 newReserveFactorMantissa)",
    "_setInterestRateModel(address newInterestRateModel)",
    "_addReserves(uint256 addAmount)",
    "_reduceReserves(uint256 reduceAmount)",
};

}  // namespace

void FunctionTable::add(evm::AbiFunction function) {
  const auto signature = function.signature();
  auto& same = functions_[evm::selector(signature)];
  if (std::ranges::find(same, signature, &evm::AbiFunction::signature) == same.end())
    same.push_back(std::move(function));
}

std::span<const evm::AbiFunction> FunctionTable::find(const evm::Selector& selector) const {
  const auto found = functions_.find(selector);
  return found == functions_.end() ? std::span<const evm::AbiFunction>() : found->second;
}

const FunctionTable& builtin_functions() {
  static const FunctionTable kTable = [] {
    FunctionTable table;
    for (const auto text : kBuiltin) table.add(evm::parse_function(text).value());
    return table;
  }();
  return kTable;
}

}  // namespace fencepost::timelock
