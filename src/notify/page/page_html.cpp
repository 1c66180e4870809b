#include <fmt/format.h>

#include "notify/page/html_style.hpp"
#include "notify/page/html_text.hpp"
#include "notify/page/page.hpp"
#include "notify/page/safe_text.hpp"

namespace fencepost::notify {
namespace {

// <tag class style>content</tag>; the content is HTML. Without classes the look is the same in the dark.
std::string element(std::string_view tag, std::string_view classes, std::string_view style, std::string_view content) {
  const auto attribute = classes.empty() ? "" : fmt::format(" class=\"{}\"", classes);
  return fmt::format("<{0}{1} style=\"{2}\">{3}</{0}>\n", tag, attribute, style, content);
}

std::string head_html(const Page& page) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"{}\">\n<head>\n"
      "<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta name=\"supported-color-schemes\" content=\"light dark\">\n"
      "<meta name=\"format-detection\" content=\"telephone=no, date=no, address=no, email=no\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n",
      html_text(page.language), html_text(page.title), style::kSheet);
}

std::string button_html(const Action& action, bool first) {
  if (!is_web_url(action.url)) return "";
  return fmt::format("<a class=\"{}\" href=\"{}\" style=\"{}\">{}</a>\n", first ? "k" : "q", html_text(action.url),
                     first ? style::kButton : style::kQuietButton, html_text(action.label));
}

std::string actions_html(const Page& page) {
  std::string out;
  for (const auto& action : page.actions) out += button_html(action, out.empty());
  if (!page.form_button.empty()) {
    out += fmt::format(
        "<form method=\"post\" style=\"margin:0\"><button class=\"k\" type=\"submit\" "
        "style=\"{}\">{}</button></form>\n",
        style::kButton, html_text(page.form_button));
  }
  return out.empty() ? out : element("div", "", style::kActions, out);
}

std::string lead_html(const Page& page) {
  std::string out = element("p", "m", style::kBrand, "Fencepost");
  if (!page.badge.text.empty()) {
    out += element("span", "", fmt::format("{}{}", style::kBadge, style::colour_of(page.badge.tone)),
                   html_text(page.badge.text));
  }
  out += element("h1", "t", style::kHeadline, html_text(page.headline));
  if (!page.code.empty()) out += element("p", "b", style::kCode, html_text(page.code));
  for (const auto& paragraph : page.paragraphs) out += element("p", "t", style::kParagraph, html_line(paragraph));
  return out + actions_html(page);
}

std::string rows_html(const std::vector<Row>& rows) {
  std::string out;
  for (const auto& row : rows) {
    out += fmt::format(
        "<tr valign=\"top\"><th scope=\"row\" class=\"l m r\" style=\"{}\">{}</th>"
        "<td class=\"v r\" style=\"{}\">{}</td></tr>\n",
        style::kLabel, html_text(row.label), style::kValue, html_line(row.value));
  }
  return rows.empty() ? out : element("table", "t", style::kRows, "\n" + out);
}

std::string section_html(const Section& section) {
  auto out = element("h2", "t", style::kHeading, html_text(section.heading)) + rows_html(section.rows);
  for (const auto& note : section.notes) out += element("p", "m", style::kNote, html_line(note));
  return out;
}

std::string footer_html(const Page& page) {
  std::string out;
  for (const auto& line : page.footer) out += element("p", "m", style::kFooterLine, html_line(line));
  for (const auto& action : page.footer_actions) {
    if (!is_web_url(action.url)) continue;
    out += element("p", "m", style::kFooterLine, html_line(linked(words(action.label), action.url)));
  }
  return out.empty() ? out : element("div", "m r", style::kFooter, out);
}

}  // namespace

std::string html_of(const Page& page) {
  auto inside = lead_html(page);
  for (const auto& section : page.sections) inside += section_html(section);
  inside += footer_html(page);

  auto out = head_html(page) + fmt::format("<body class=\"g\" style=\"{}\">\n", style::kBody);
  if (!page.preheader.empty()) out += element("div", "", style::kPreheader, html_text(page.preheader));
  out += fmt::format(
      "<table role=\"presentation\" width=\"100%\" cellpadding=\"0\" cellspacing=\"0\" border=\"0\">\n"
      "<tr><td class=\"g\" align=\"center\" style=\"{}\">\n"
      "<table role=\"presentation\" class=\"c\" cellpadding=\"0\" cellspacing=\"0\" border=\"0\" style=\"{}\">\n"
      "<tr><td class=\"p t\" style=\"{}\">\n{}</td></tr>\n</table>\n</td></tr>\n</table>\n</body>\n</html>\n",
      style::kGround, style::kCard, style::kInside, inside);
  return out;
}

std::size_t html_size(const Section& section) {
  return section_html(section).size();
}

}  // namespace fencepost::notify
