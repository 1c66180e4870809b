#include "notify/words/words.hpp"

namespace fencepost::notify {

constexpr FlowWords kEnglishFlow{
    .waiting = {.name = "Waiting",
                .subject = "Queued",
                .headline = "An operation was queued",
                .meaning = "The operation can be executed when its delay is over. Until then there is time to check "
                           "what it does.",
                .undone = "The block that queued the operation is no longer part of the chain: the operation is not "
                          "queued now."},
    .ready = {.name = "Ready",
              .subject = "Ready to execute",
              .headline = "An operation is ready to execute",
              .meaning = "Its delay is over: the operation can be executed now.",
              .undone = "The operation is not ready to execute now."},
    .executed = {.name = "Executed",
                 .subject = "Executed",
                 .headline = "An operation was executed",
                 .meaning = "The timelock has made the calls below.",
                 .undone = "The block that executed the operation is no longer part of the chain: the calls below have "
                           "no effect now. A later block may include the transaction again."},
    .cancelled = {.name = "Cancelled",
                  .subject = "Cancelled",
                  .headline = "An operation was cancelled",
                  .meaning = "The operation cannot be executed any more, unless it is queued again.",
                  .undone = "The operation is not cancelled now: it may still be executed."},
    .expired = {.name = "Expired",
                .subject = "Expired",
                .headline = "An operation has expired",
                .meaning = "It was not executed before its grace period ended, and the timelock now refuses to execute "
                           "it. To be executed, it has to be queued again.",
                .undone = "The operation has not expired: it may still be executed."},
    .blocked = {.name = "Ready",
                .subject = "Ready but blocked",
                .headline = "An operation is ready, but another one blocks it",
                .meaning = "Its delay is over, but another operation has to be executed first.",
                .undone = "The operation is not ready to execute now."},

    .undone_badge = "Taken back",
    .undone_subject = "Change taken back ({0})",
    .undone_headline = "A change was taken back",
    .undone_intro =
        "An earlier mail announced the status “{0}” for this operation. A chain reorganisation has undone "
        "that change. Please disregard the earlier mail.",
    .undone_outlook = "If the change happens again, you will get a new mail.",

    .subject_named = "{0}: {1} ({2}) on {3}",
    .subject_unnamed = "{0}: timelock {2} on {3}",

    .operation = "Operation",
    .timelock = "Timelock",
    .address = "Address",
    .remark = "Your remark",
    .chain = "Chain",
    .named_chain = "{0} (chain ID {1})",
    .unnamed_chain = "chain {0}",
    .status = "Status",
    .status_change = "{0} → {1}",
    .status_new = "{0} (new operation)",
    .status_undone = "{0}, taken back",
    .changed_at = "Changed at",
    .ready_at = "Ready at",
    .no_ready_at = "No date: the time in the contract is too far in the future to be written as one",
    .expires_at = "Expires at",
    .expired_at = "Expired at",
    .blocked_by = "Blocked by",
    .not_before = "This operation cannot be executed before {0} has been executed",
    .initiator = "Initiator",
    .via = "Via",
    .details = "Details",
    .transaction = "Transaction",
    .queue_transaction = "Queued in",
    .operation_id = "Operation ID",
    .standard = "Standard",

    .open_dashboard = "Open in the dashboard",
    .view_transaction = "View the transaction",
    .why = "You get this mail because this address is subscribed to the timelock {0} on {1}.",
    .unsubscribe = "Unsubscribe from this timelock",
};

constexpr CallWords kEnglishCall{
    .one = "Call",
    .many = "Call {0} of {1}",
    .more_calls_heading = "More calls",
    .more_call = "1 more call is not shown here.",
    .more_calls = "{0} more calls are not shown here.",
    .function = "Function",
    .unknown_function = "Unknown, with the selector {0}",
    .no_function = "None, the call has no data",
    .target = "Target",
    .value = "Value",
    .amount = "{0} (in the chain's coin), which is {1} wei",
    .data = "Data",
    .empty_value = "(empty)",
    .cut_bytes = "{0}… (the first {1} of {2} bytes)",
    .cut_characters = "{0}… (the first {1} of {2} characters)",
    .more_argument = "1 more argument is not shown here.",
    .more_arguments = "{0} more arguments are not shown here.",
    .not_explained = "There is no certain way to decode this call. Check its data before you rely on it.",
};

constexpr TimeWords kEnglishTime{
    .day = {.one = "{0} day", .many = "{0} days"},
    .hour = {.one = "{0} hour", .many = "{0} hours"},
    .minute = {.one = "{0} minute", .many = "{0} minutes"},
    .second = {.one = "{0} second", .many = "{0} seconds"},
    .two_units = "{0} {1}",
    .in = "in {0}",
    .ago = "{0} ago",
    .now = "now",
    .soon = "in less than a minute",
    .just_now = "less than a minute ago",
    .moment = "{0} ({1})",
};

constexpr CodeWords kEnglishCode{
    .subject = "Confirm your mail address for Fencepost",
    .headline = "Confirm your mail address",
    .enter = "Enter this code in Fencepost to confirm that this mail address is yours.",
    .lifetime = "The code is valid for {0}.",
    .secret = "Never pass the code on. Fencepost does not ask for it by mail, by phone or in a chat.",
    .not_you = "If you did not ask for it, ignore this mail: without the code, nothing happens.",
};

constexpr UnsubscribeWords kEnglishUnsubscribe{
    .ask_headline = "Unsubscribe?",
    .ask = "{0} gets mails about the timelock {1} on chain {2}.",
    .ask_note = "This stops all of them, including those that other users of the address asked for.",
    .button = "Unsubscribe",
    .done_headline = "Unsubscribed",
    .done = "{0} gets no more mails about the timelock {1} on chain {2}.",
    .done_note = "To get them again, log in and resume the subscription.",
    .bad_link_headline = "This link is not valid",
    .bad_link = "The link may have been cut. Open it again from the mail.",
};

const Words kEnglishWords{
    .language = "en",
    .colon = ": ",
    .flow = kEnglishFlow,
    .call = kEnglishCall,
    .time = kEnglishTime,
    .code = kEnglishCode,
    .unsubscribe = kEnglishUnsubscribe,
};

}  // namespace fencepost::notify
