#include "notify/page/html_text.hpp"

#include <fmt/format.h>

#include "notify/page/html_style.hpp"
#include "notify/page/safe_text.hpp"

namespace fencepost::notify {

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : one_line(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string html_line(const Line& line) {
  std::string out;
  for (const auto& piece : line) {
    auto html = html_text(piece.text);
    if (piece.mono) html = fmt::format("<code style=\"{}\">{}</code>", style::kMono, html);
    if (piece.strong) html = fmt::format("<strong>{}</strong>", html);
    if (is_web_url(piece.url)) {
      html = fmt::format("<a class=\"a\" href=\"{}\" style=\"{}\">{}</a>", html_text(piece.url), style::kLink, html);
    }
    out += html;
  }
  return out;
}

}  // namespace fencepost::notify
