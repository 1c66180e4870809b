// The statements that read flows for people: lists, searches, one flow. Each page is a few short walks along an index,
// however many flows there are.
#pragma once

#include "pg/batch.hpp"

namespace fencepost::timelock::sql {

// One way to select flows, in each order of FlowSort. The parameters are those of list_flows.
struct FlowList {
  pg::Statement newest;
  pg::Statement eta;
  pg::Statement latest_eta;
};

extern const FlowList kByChain;
extern const FlowList kByContract;
extern const FlowList kByInitiator;
extern const FlowList kByHash;
extern const FlowList kByAddress;
extern const FlowList kByText;
extern const pg::Statement kFindFlow;
extern const pg::Statement kCompoundFlowEvents;
extern const pg::Statement kOpenZeppelinFlowEvents;

}  // namespace fencepost::timelock::sql
