// The settings of mail; docs/configuration.md describes them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/secret.hpp"

namespace fencepost::notify {

enum class TransportKind {
  kNone,  // no mail is sent, and no address can be added
  kSmtp,
  kFile,
};

struct EmailOptions {
  TransportKind transport = TransportKind::kNone;
  std::string smtp_url;   // of the transport `smtp`
  std::string directory;  // of the transport `file`: one .eml for each mail
  std::string username;
  Secret password;
  std::string ca_file;  // authorities of the server's certificate; empty: the system's
  std::string from;
  std::chrono::milliseconds timeout = std::chrono::seconds{10};
  std::size_t connections = 4;                // to the mail server, each with one mail in flight
  std::uint32_t rate_per_second = 100;        // of this node
  std::uint32_t domain_rate_per_second = 20;  // of this node, to the addresses of one domain
  std::chrono::milliseconds retry_initial = std::chrono::seconds{5};
  std::chrono::milliseconds retry_cap = std::chrono::hours{1};
  std::chrono::milliseconds retry_for = std::chrono::hours{24};

  std::chrono::milliseconds log_retention = std::chrono::days{365};

  std::chrono::milliseconds code_ttl = std::chrono::minutes{10};
  std::chrono::milliseconds code_resend_interval = std::chrono::minutes{1};
  std::uint32_t codes_per_address_per_day = 10;
  std::uint32_t codes_per_user_per_day = 20;

  std::vector<std::string> operators;  // addresses that get mails about stuck transactions and failed verification
  std::string dashboard_url;           // empty: mails have no link to the dashboard

  bool configured() const { return transport != TransportKind::kNone; }
};

}  // namespace fencepost::notify
