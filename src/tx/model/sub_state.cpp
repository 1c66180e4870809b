#include "tx/model/sub_state.hpp"

namespace fencepost::tx {

SubState sub_state_of(evm::SubmitClass answer) {
  switch (answer) {
    case evm::SubmitClass::kAccepted:
    case evm::SubmitClass::kKnownTransaction:
      return SubState::kNone;
    case evm::SubmitClass::kNonceTooLow:
      return SubState::kNonceTooLow;
    case evm::SubmitClass::kNonceTooHigh:
      return SubState::kNonceTooHigh;
    case evm::SubmitClass::kUnderpriced:
      return SubState::kUnderpriced;
    case evm::SubmitClass::kFeeTooLow:
      return SubState::kFeeTooLow;
    case evm::SubmitClass::kFeeCapExceeded:
      return SubState::kFeeCapExceeded;
    case evm::SubmitClass::kInsufficientFunds:
      return SubState::kInsufficientFunds;
    case evm::SubmitClass::kIntrinsicGas:
      return SubState::kIntrinsicGas;
    case evm::SubmitClass::kReverted:
      return SubState::kReverted;
    case evm::SubmitClass::kTransient:
      return SubState::kTransient;
    case evm::SubmitClass::kInvalid:
      return SubState::kInvalid;
    case evm::SubmitClass::kUnknown:
      break;
  }
  return SubState::kUnknown;
}

}  // namespace fencepost::tx
