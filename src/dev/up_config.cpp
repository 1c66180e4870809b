#include "dev/up_config.hpp"

namespace fencepost {

CommandConfig up_config(const std::string& config_file, const UpParts& parts) {
  CommandConfig out{.file = config_file, .overrides = {}};
  out.overrides.push_back({"up", "database.dsn", parts.dsn});
  if (parts.port) out.overrides.push_back({"--port", "http.port", std::to_string(*parts.port)});
  out.defaults.push_back({"up", "log.file", parts.log_file.string()});
  if (!parts.mail_dir.empty()) {
    out.defaults.push_back({"up", "email.transport", "file"});
    out.defaults.push_back({"up", "email.directory", parts.mail_dir.string()});
    out.defaults.push_back({"up", "email.from", "fencepost@up.localhost"});
  }
  if (!parts.chain_url) return out;
  out.overrides.push_back({"up", "chains[0].name", "dev"});
  out.overrides.push_back({"up", "chains[0].chain_id", std::to_string(parts.chain_id)});
  out.overrides.push_back({"up", "chains[0].rpc_urls", *parts.chain_url});
  out.defaults.push_back({"up", "confirmations.required", "2"});
  out.defaults.push_back({"up", "scanner.confirmations", "0"});
  out.defaults.push_back({"up", "tx.max_in_flight", "16"});
  out.defaults.push_back({"up", "webhooks.allow_private", "true"});
  out.defaults.push_back({"up", "webhooks.allow_http", "true"});
  // Users who try things out also send with cast from the same accounts.
  out.defaults.push_back({"up", "tx.shared", "true"});
  return out;
}

}  // namespace fencepost
