// How commands find a running `fencepost up`: by the file that it keeps in its data directory while it runs.
//
//   {"url": …, "apiKey": …, "rpcUrl": …, "chainId": …, "signers": […], "dsn": …, "pid": …,
//    "startTicks": …, "settings": …, "config": …}
#pragma once

#include <filesystem>

#include <boost/json/value.hpp>

#include "base/error.hpp"

namespace fencepost {

std::filesystem::path up_json_file(const std::filesystem::path& data_dir);
// Where `up` puts mails, one .eml each, unless the user configures another transport.
std::filesystem::path mail_dir(const std::filesystem::path& data_dir);

// Errors: kNotFound `not_up` if no `up` runs there; that of parse_json if the file is not valid.
Result<boost::json::value> read_up_json(const std::filesystem::path& data_dir);

}  // namespace fencepost
