// The look of pages. Mail programs know inline styles; those that know <style> too get the dark and the narrow look.
// All colours have a contrast of at least 4.5 : 1, so that a program that inverts them keeps them readable.
#pragma once

#include <string_view>

#include "notify/page/page.hpp"

namespace fencepost::notify::style {

// The classes: g ground, c card, p padding, t text, m muted, a link, r rule, b box, k button, q quiet button, l label,
// v value.
inline constexpr std::string_view kSheet =
    ":root{color-scheme:light dark;supported-color-schemes:light dark}"
    "@media (max-width:480px){"
    ".p{padding:20px 16px!important}"
    ".l,.v{display:block!important;width:auto!important}"
    ".l{padding:10px 0 0!important}"
    ".v{padding:2px 0 10px!important;border-top:0!important}"
    "}"
    "@media (prefers-color-scheme:dark){"
    ".g{background:#10151b!important}"
    ".c{background:#1a2129!important;border-color:#333d48!important}"
    ".t{color:#e7eaee!important}"
    ".m{color:#a7b1bc!important}"
    ".a{color:#8ab4ff!important}"
    ".r{border-color:#333d48!important}"
    ".b{background:#242d37!important;color:#e7eaee!important}"
    ".q{color:#8ab4ff!important;border-color:#4a5664!important}"
    "}";

#define FENCEPOST_SANS                                                                                   \
  "font-family:-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,'PingFang SC','Hiragino Sans GB'," \
  "'Microsoft YaHei','Noto Sans CJK SC',sans-serif;"
#define FENCEPOST_MONO "font-family:Menlo,Consolas,monospace;"

inline constexpr std::string_view kBody =
    "margin:0;padding:0;background:#f2f4f7;-webkit-text-size-adjust:100%;text-size-adjust:100%";
inline constexpr std::string_view kPreheader =
    "display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;font-size:1px;line-height:1px;mso-hide:all";
inline constexpr std::string_view kGround = "background:#f2f4f7;padding:24px 8px";
inline constexpr std::string_view kCard =
    "width:100%;max-width:640px;background:#ffffff;border:1px solid #dde2e8;border-radius:12px;"
    "border-collapse:separate;table-layout:fixed";
inline constexpr std::string_view kInside = "padding:28px 32px;text-align:left;" FENCEPOST_SANS
                                            "font-size:15px;line-height:1.55;color:#1c2530;overflow-wrap:anywhere";
inline constexpr std::string_view kBrand = "margin:0 0 18px;font-size:13px;font-weight:600;color:#57626e";
inline constexpr std::string_view kBadge =
    "display:inline-block;margin:0 0 10px;padding:3px 10px;border-radius:999px;font-size:12px;line-height:1.5;"
    "font-weight:600;color:#ffffff;background:";
inline constexpr std::string_view kHeadline =
    "margin:0 0 12px;font-size:22px;line-height:1.3;font-weight:700;color:#1c2530";
inline constexpr std::string_view kParagraph = "margin:0 0 12px;color:#1c2530";
inline constexpr std::string_view kCode =
    "margin:20px 0;padding:16px "
    "8px;border-radius:8px;background:#eef1f5;color:#1c2530;text-align:center;" FENCEPOST_MONO
    "font-size:30px;line-height:1.2;font-weight:700;letter-spacing:6px";
inline constexpr std::string_view kActions = "margin:20px 0 8px";
inline constexpr std::string_view kButton =
    "display:inline-block;margin:0 8px 10px 0;padding:9px 18px;border:1px solid #1d4ed8;border-radius:8px;"
    "background:#1d4ed8;color:#ffffff;font:inherit;font-weight:600;text-decoration:none;cursor:pointer";
inline constexpr std::string_view kQuietButton =
    "display:inline-block;margin:0 8px 10px 0;padding:9px 18px;border:1px solid #c3cbd4;border-radius:8px;"
    "color:#1d4ed8;font-weight:600;text-decoration:none";
inline constexpr std::string_view kHeading =
    "margin:26px 0 6px;font-size:16px;line-height:1.4;font-weight:700;color:#1c2530";
// The cells inherit what they can: a page has hundreds of them, and some mail programs cut off a large mail.
inline constexpr std::string_view kRows =
    "width:100%;border-collapse:collapse;font-size:14px;line-height:1.5;color:#1c2530;word-break:break-word;"
    "overflow-wrap:anywhere";
inline constexpr std::string_view kLabel =
    "width:30%;padding:7px 12px 7px 0;border-top:1px solid #dde2e8;text-align:left;font-weight:400;color:#57626e";
inline constexpr std::string_view kValue = "padding:7px 0;border-top:1px solid #dde2e8";
inline constexpr std::string_view kNote = "margin:8px 0 0;font-size:14px;color:#57626e";
inline constexpr std::string_view kFooter =
    "margin:28px 0 0;padding:16px 0 0;border-top:1px solid #dde2e8;font-size:13px;color:#57626e";
inline constexpr std::string_view kFooterLine = "margin:0 0 6px";
inline constexpr std::string_view kMono = FENCEPOST_MONO "font-size:0.9em;word-break:break-all";
inline constexpr std::string_view kLink = "color:#1d4ed8;text-decoration:underline";

#undef FENCEPOST_SANS
#undef FENCEPOST_MONO

// Behind the white text of a badge.
constexpr std::string_view colour_of(Tone tone) {
  switch (tone) {
    case Tone::kNeutral:
      return "#4b5563";
    case Tone::kInfo:
      return "#1d4ed8";
    case Tone::kAction:
      return "#a34a06";
    case Tone::kGood:
      return "#14713a";
    case Tone::kBad:
      return "#b42318";
    case Tone::kUndone:
      return "#6d28d9";
  }
  return "#4b5563";
}

}  // namespace fencepost::notify::style
