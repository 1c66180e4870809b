#include "tx/rpc/rpc_request.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>

#include "base/json.hpp"

namespace fencepost::tx {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxMethod = 100;
constexpr std::size_t kMaxIdText = 256;

// Checks the syntax and keeps nothing.
struct Check {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
  using Code = json::error_code;

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return true; }
  bool on_object_end(std::size_t, Code&) { return true; }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t, Code&) { return true; }
  bool on_key_part(json::string_view, std::size_t, Code&) { return true; }
  bool on_key(json::string_view, std::size_t, Code&) { return true; }
  bool on_string_part(json::string_view, std::size_t, Code&) { return true; }
  bool on_string(json::string_view, std::size_t, Code&) { return true; }
  bool on_number_part(json::string_view, Code&) { return true; }
  bool on_int64(std::int64_t, json::string_view, Code&) { return true; }
  bool on_uint64(std::uint64_t, json::string_view, Code&) { return true; }
  bool on_double(double, json::string_view, Code&) { return true; }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(json::string_view, Code&) { return true; }
  bool on_comment(json::string_view, Code&) { return true; }
};

Result<void> check_syntax(std::string_view text) {
  json::parse_options options;
  options.max_depth = kJsonMaxDepth;
  json::basic_parser<Check> parser(options);
  json::error_code ec;
  const auto read = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && text.find_first_not_of(" \t\r\n", read) == std::string_view::npos) return {};
  return fail(invalid("bad_json", fmt::format("the body is not valid JSON at byte {}: {}", read,
                                              ec ? ec.message() : std::string("text after the end"))));
}

// Walks over text that check_syntax has accepted, so that it need not check anything itself.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) { skip_space(); }

  char next() const { return rest_.empty() ? '\0' : rest_.front(); }
  // Enters an object or array. False when it is empty; it has then been left already.
  bool enter() {
    take(1);
    if (next() != '}' && next() != ']') return true;
    take(1);
    return false;
  }
  // After an element: true when another one follows. False: the object or array has been left.
  bool more() {
    const bool comma = next() == ',';
    take(1);
    return comma;
  }
  // A member's name, still quoted and escaped.
  std::string_view key() {
    const auto text = value();
    take(1);  // the colon
    return text;
  }
  // The text of the next value.
  std::string_view value() {
    const auto size = size_of_value();
    const auto text = rest_.substr(0, size);
    take(size);
    return text;
  }

 private:
  void take(std::size_t size) {
    rest_.remove_prefix(std::min(size, rest_.size()));
    skip_space();
  }
  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

  std::size_t size_of_value() const {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (c == '"') i = end_of_string(i);
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      const bool nested = c == '"' || c == '}' || c == ']';
      if (depth > 0) continue;
      if (nested) return i + 1;
      if (i + 1 == rest_.size() || std::string_view(",}] \t\r\n").find(rest_[i + 1]) != std::string_view::npos) {
        return i + 1;  // the last character of a number or a word
      }
    }
    return rest_.size();
  }
  std::size_t end_of_string(std::size_t quote) const {
    for (auto i = quote + 1; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        return i;
      }
    }
    return rest_.size() - 1;
  }

  std::string_view rest_;
};

std::string decoded(std::string_view quoted) {
  return std::string(json::parse(quoted).as_string());
}

Error bad_call(std::string message) {
  return invalid("bad_rpc_request", std::move(message));
}

// The first member of a name counts as read; the call is refused when the name comes again.
class CallReader {
 public:
  RpcRequestCall read(Scanner& in) {
    if (in.next() != '{') {
      in.value();
      return refused("expected an object with jsonrpc, id, method and params");
    }
    for (bool more = in.enter(); more; more = in.more()) {
      const auto name = decoded(in.key());
      take(name, in.value());
    }
    if (!version_) refuse(R"(jsonrpc: expected "2.0")");
    if (call_.method.empty()) refuse("method: is required");
    if (call_.error && !call_.id) call_.id = "null";
    return std::move(call_);
  }

 private:
  void take(const std::string& name, std::string_view text) {
    if (name == "jsonrpc") {
      once(has_version_, name);
      version_ = text == R"("2.0")";
    } else if (name == "id") {
      once(has_id_, name);
      take_id(text);
    } else if (name == "method") {
      once(has_method_, name);
      take_method(text);
    } else if (name == "params") {
      once(has_params_, name);
      if (text == "null") return;
      if (!text.starts_with('[') && !text.starts_with('{')) return refuse("params: expected an array or an object");
      call_.params = text;
    }
  }
  void take_id(std::string_view text) {
    const bool scalar = !text.starts_with('{') && !text.starts_with('[') && text != "true" && text != "false";
    if (!scalar || text.size() > kMaxIdText) {
      return refuse(fmt::format("id: expected a string, a number or null of at most {} bytes", kMaxIdText));
    }
    call_.id = text;
  }
  void take_method(std::string_view text) {
    if (!text.starts_with('"') || text.size() > kMaxMethod) {
      return refuse(fmt::format("method: expected a string of at most {} bytes", kMaxMethod - 2));
    }
    call_.method = decoded(text);
  }
  void once(bool& seen, const std::string& name) {
    if (std::exchange(seen, true)) refuse(name + ": is given twice");
  }
  void refuse(std::string why) {
    if (!call_.error) call_.error = bad_call(std::move(why));
  }
  static RpcRequestCall refused(std::string why) {
    return {.id = "null", .method = {}, .params = "[]", .error = bad_call(std::move(why))};
  }

  RpcRequestCall call_;
  bool version_ = false;
  bool has_version_ = false;
  bool has_id_ = false;
  bool has_method_ = false;
  bool has_params_ = false;
};

}  // namespace

Result<RpcRequest> parse_rpc_request(std::string_view body) {
  if (auto checked = check_syntax(body); !checked) return fail(std::move(checked).error());
  Scanner in(body);
  RpcRequest request{.batch = in.next() == '[', .calls = {}};
  if (!request.batch) {
    request.calls.push_back(CallReader().read(in));
    return request;
  }
  for (bool more = in.enter(); more; more = in.more()) {
    if (request.calls.size() == kRpcMaxCalls) {
      return fail(invalid("too_many_items", fmt::format("a batch has at most {} calls; split it", kRpcMaxCalls)));
    }
    request.calls.push_back(CallReader().read(in));
  }
  if (request.calls.empty()) return fail(bad_call("the batch is empty"));
  return request;
}

}  // namespace fencepost::tx
