// What a mail or a small web page says, before it becomes HTML or plain text. Pure.
#pragma once

#include <string>
#include <vector>

#include "notify/page/line.hpp"

namespace fencepost::notify {

enum class Tone { kNeutral, kInfo, kAction, kGood, kBad, kUndone };

struct Badge {
  std::string text;  // empty: no badge
  Tone tone = Tone::kNeutral;
};

struct Row {
  std::string label;
  Line value;
};

struct Section {
  std::string heading;
  std::vector<Row> rows;
  std::vector<Line> notes;  // below the rows
};

struct Action {
  std::string label;
  std::string url;  // not a web URL: the action is left out
};

struct Page {
  std::string language;   // of BCP 47: "en", "zh-Hans"
  std::string colon;      // between a label and its value: ": "
  std::string title;      // of the browser's tab
  std::string preheader;  // what a mail program shows beside the subject; empty: none
  Badge badge;
  std::string headline;
  std::string code;  // to be typed in elsewhere; empty: none
  std::vector<Line> paragraphs;
  std::vector<Action> actions;  // the first one stands out
  std::string form_button;      // posts to the page's own address: for web pages only; empty: none
  std::vector<Section> sections;
  std::vector<Line> footer;
  std::vector<Action> footer_actions;
};

// Both make text from outside safe, and are deterministic: the same page gives the same bytes.

// A document without scripts, images or anything else to load; inline styles, since mail programs drop others.
std::string html_of(const Page& page);

// UTF-8, lines end with \n and have at most kTextColumns columns, except for URLs, which are not broken.
std::string text_of(const Page& page);
inline constexpr std::size_t kTextColumns = 76;

// What the section adds to html_of(page).
std::size_t html_size(const Section& section);

}  // namespace fencepost::notify
