// How commands find a running `fencepost up`: the file it keeps in its data directory while it is up.
//
//   {"url": …, "apiKey": …, "rpcUrl": …, "chainId": …, "signers": […], "dsn": …, "pid": …}
#pragma once

#include <filesystem>

#include <boost/json/value.hpp>

#include "base/error.hpp"

namespace fencepost {

std::filesystem::path up_json_file(const std::filesystem::path& data_dir);

// kNotFound `not_up` when nothing is up there; that of parse_json when the file is none of ours.
Result<boost::json::value> read_up_json(const std::filesystem::path& data_dir);

}  // namespace fencepost
