// deploy/grafana/fencepost.json: a dashboard that Grafana imports, over metrics that a node has.
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "http/uri.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/metric_docs.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using Names = std::set<std::string>;

struct Query {
  std::string panel;
  std::string expression;
  std::string legend;
};

std::string text(const json::value& value) {
  return std::string(value.as_string());
}

const json::object& dashboard() {
  static const json::value document = json::parse(read_file(source_dir() / "deploy/grafana/fencepost.json"));
  return document.as_object();
}

std::vector<const json::object*> panels(bool rows) {
  std::vector<const json::object*> out;
  for (const auto& panel : dashboard().at("panels").as_array()) {
    if ((panel.at("type") == "row") == rows) out.push_back(&panel.as_object());
  }
  return out;
}

std::vector<Query> queries() {
  std::vector<Query> out;
  for (const auto* panel : panels(false)) {
    for (const auto& target : panel->at("targets").as_array()) {
      out.push_back({text(panel->at("title")), text(target.at("expr")), text(target.at("legendFormat"))});
    }
  }
  return out;
}

// Labels of a list such as "chain, endpoint".
Names labels_in(const std::string& list) {
  return all_matches(list, std::regex(R"(([a-z_]+))"));
}

bool has_several_series(const Metric& metric) {
  return metric.type == "histogram" || metric.type == "summary";
}

// The metric's name without the suffix of a histogram's or summary's series.
std::string base_name(const std::string& series, const MetricsByName& documented) {
  for (const std::string suffix : {"_bucket", "_sum", "_count"}) {
    if (!series.ends_with(suffix)) continue;
    const auto base = series.substr(0, series.size() - suffix.size());
    if (const auto found = documented.find(base); found != documented.end() && has_several_series(found->second)) {
      return base;
    }
  }
  return series;
}

TEST(dashboard, has_its_rows_in_order) {
  std::vector<std::string> titles;
  for (const auto* row : panels(true)) titles.push_back(text(row->at("title")));
  EXPECT_EQ(titles, (std::vector<std::string>{"Transactions", "Chains and endpoints", "Transfers", "Timelocks and mail",
                                              "Node and database"}));
}

TEST(dashboard, can_be_imported_with_any_data_source) {
  EXPECT_GE(dashboard().at("schemaVersion").as_int64(), 36) << "Grafana 9";
  EXPECT_TRUE(dashboard().at("id").is_null()) << "an id belongs to one installation";
  EXPECT_EQ(dashboard().at("uid"), "fencepost");
  const auto& variables = dashboard().at("templating").at("list").as_array();
  EXPECT_EQ(variables.at(0).at("name"), "datasource");
  EXPECT_EQ(variables.at(0).at("type"), "datasource");
  for (const auto* panel : panels(false)) {
    EXPECT_EQ(panel->at("datasource").at("uid"), "${datasource}") << panel->at("title");
    for (const auto& target : panel->at("targets").as_array()) {
      EXPECT_EQ(target.at("datasource").at("uid"), "${datasource}") << panel->at("title");
    }
  }
}

TEST(dashboard, has_a_title_a_unit_and_a_place_for_each_panel) {
  std::set<std::int64_t> ids;
  std::set<std::pair<std::int64_t, std::int64_t>> taken;
  Names titles;
  EXPECT_GT(panels(false).size(), 50U);
  for (const bool rows : {true, false}) {
    for (const auto* panel : panels(rows)) {
      const auto title = text(panel->at("title"));
      EXPECT_TRUE(ids.insert(panel->at("id").as_int64()).second) << title;
      EXPECT_TRUE(!title.empty() && titles.insert(title).second) << "no title, or twice: " << title;
      const auto& place = panel->at("gridPos");
      const auto left = place.at("x").as_int64();
      const auto width = place.at("w").as_int64();
      EXPECT_LE(left + width, 24) << title;
      for (auto x = left; x < left + width; ++x) {
        for (auto y = place.at("y").as_int64(); y < place.at("y").as_int64() + place.at("h").as_int64(); ++y) {
          EXPECT_TRUE(taken.emplace(x, y).second) << title << " covers another panel";
        }
      }
      if (!rows) EXPECT_FALSE(text(panel->at("fieldConfig").at("defaults").at("unit")).empty()) << title;
    }
  }
}

TEST(dashboard, uses_only_metrics_and_labels_of_a_node) {
  const auto documented = documented_metrics();
  ASSERT_GT(documented.size(), 50U);
  Names used;
  for (const auto& [panel, expression, legend] : queries()) {
    SCOPED_TRACE(panel + ": " + expression);
    Names known{"instance"};
    const std::regex selector(R"(\b((?:fencepost|process)_[a-z_]+)\{([^}]*)\})");
    for (auto it = std::sregex_iterator(expression.begin(), expression.end(), selector); it != std::sregex_iterator();
         ++it) {
      const std::string series = (*it)[1];
      const auto metric = documented.find(base_name(series, documented));
      ASSERT_NE(metric, documented.end()) << series;
      used.insert(metric->first);
      auto labels = metric->second.labels;
      labels.insert("instance");
      EXPECT_EQ(has_several_series(metric->second), series != metric->first) << metric->second.type << ": " << series;
      EXPECT_FALSE(metric->second.type == "summary" && series.ends_with("_bucket")) << series;
      for (const auto& label : all_matches((*it)[2], std::regex(R"(([a-z_]+)=)"))) {
        EXPECT_TRUE(labels.contains(label)) << label;
      }
      // Workers of no chain have no such label, and would not be shown.
      const bool of_chains = labels.contains("chain") && !series.starts_with("fencepost_worker_");
      EXPECT_EQ(of_chains, (*it)[2].str().contains("$chain")) << "each chain can be chosen";
      EXPECT_TRUE((*it)[2].str().contains("$instance")) << "each node can be chosen";
      known.merge(labels);
      if (series.ends_with("_bucket")) known.insert("le");
    }
    // Each metric has a selector, so that none escaped the check above.
    EXPECT_EQ(all_matches(expression, std::regex(R"(\b((?:fencepost|process)_[a-z_]+)(?!\{|[a-z_]))")), Names{});
    Names grouped;
    const std::regex by(R"(\b(?:by|on) \(([^)]*)\))");
    for (auto it = std::sregex_iterator(expression.begin(), expression.end(), by); it != std::sregex_iterator(); ++it) {
      grouped.merge(labels_in((*it)[1]));
    }
    for (const auto& label : grouped) EXPECT_TRUE(known.contains(label)) << label;
    const bool aggregated = std::regex_search(expression, std::regex(R"(\b(sum|min|max|count)\b)"));
    for (const auto& label : all_matches(legend, std::regex(R"(\{\{([a-z_]+)\}\})"))) {
      EXPECT_TRUE((aggregated ? grouped : known).contains(label)) << "legend " << legend;
    }
  }
  EXPECT_GT(used.size(), 60U);
}

TEST(dashboard, offers_nodes_and_chains_from_metrics_that_each_node_has) {
  const auto documented = documented_metrics();
  Names names;
  for (const auto& variable : dashboard().at("templating").at("list").as_array()) {
    names.insert(text(variable.at("name")));
    if (variable.at("type") != "query") continue;
    EXPECT_EQ(variable.at("datasource").at("uid"), "${datasource}");
    const auto query = text(variable.at("definition"));
    std::smatch match;
    ASSERT_TRUE(std::regex_match(query, match, std::regex(R"(label_values\(([a-z_]+), ([a-z_]+)\))"))) << query;
    ASSERT_TRUE(documented.contains(match[1])) << query;
    EXPECT_TRUE(match[2] == "instance" || documented.at(match[1]).labels.contains(match[2])) << query;
    EXPECT_EQ(query, text(variable.at("query").at("query")));
  }
  EXPECT_EQ(names, (Names{"datasource", "instance", "chain"}));
}

// promtool has no command for a bare expression, but it reads the expressions of recording rules.
TEST(dashboard, asks_what_prometheus_understands) {
  const TempDir folder("dashboard");
  const auto file = folder / "rules.yml";
  std::ofstream rules(file);
  rules << "groups:\n  - name: dashboard\n    rules:\n";
  const auto all = queries();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto expression = std::regex_replace(all[i].expression, std::regex(R"(\$__rate_interval)"), "5m");
    rules << fmt::format("      - record: panel_{}\n        expr: >-\n          {}\n", i, expression);
  }
  rules.close();
  const auto checked = run_command({"promtool", "check", "rules", file.string()});
  EXPECT_EQ(checked.status.code, 0) << checked.out << checked.err;
  EXPECT_NE(checked.out.find(fmt::format("{} rules found", all.size())), std::string::npos) << checked.out;
}

// A Prometheus that scrapes one node every two seconds.
class Prometheus {
 public:
  explicit Prometheus(const std::string& target) {
    std::ofstream(dir_ / "prometheus.yml")
        << "global: {scrape_interval: 2s, scrape_timeout: 2s}\nscrape_configs:\n  - job_name: fencepost\n"
        << "    static_configs: [{targets: [\"" << target << "\"]}]\n";
    auto child =
        ChildProcess::start({.argv = {"prometheus", "--config.file=" + (dir_ / "prometheus.yml").string(),
                                      "--storage.tsdb.path=" + (dir_ / "data").string(), "--web.listen-address=" + at_},
                             .out = Output::file(dir_ / "log"),
                             .err = Output::same_as_out()});
    if (!child) throw Exception(child.error());
    child_.emplace(std::move(*child));
  }

  Answer query(const std::string& expression) const {
    return ask({.url = "http://" + at_ + "/api/v1/query?query=" + http::percent_encode(expression)});
  }
  // Requires: the answer has status 200.
  static std::size_t series(const Answer& answer) { return answer.json().at("data").at("result").as_array().size(); }

 private:
  TempDir dir_{"prometheus"};
  std::string at_ = fmt::format("127.0.0.1:{}", free_port());
  std::optional<ChildProcess> child_;
};

TEST(dashboard, shows_the_work_of_a_node) {
  const Names must_be_empty{
      "Certificate expires in", "Lag of consumers of events",         "Events published to NATS, and failures",
      "Mails that are due",     "Attempts to send a mail, by result", "How long the oldest mail has been due"};
  const Names may_be_empty{"Age of the oldest open transaction", "Failed runs of workers"};
  TxCluster cluster;
  cluster.create(0, transfer(signer(0), "first", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  const auto url = cluster.node(0).url("");
  const Prometheus prometheus(url.substr(url.find("//") + 2));
  Answer answer;
  const auto shows = [&](const std::string& expression) {
    answer = prometheus.query(expression);
    return answer.status == 200 && Prometheus::series(answer) > 0;
  };
  ASSERT_TRUE(eventually([&] { return shows("rate(fencepost_chain_head_block[20s])"); }, 60s)) << answer.body;
  for (const auto& [panel, expression, legend] : queries()) {
    auto asked = std::regex_replace(expression, std::regex(R"(\$__rate_interval|\b5m\b)"), "20s");
    asked = std::regex_replace(asked, std::regex(R"(\$(instance|chain))"), ".*");
    SCOPED_TRACE(panel + ": " + asked);
    EXPECT_TRUE(eventually([&] {
      const bool shown = shows(asked);
      return answer.status == 200 && (may_be_empty.contains(panel) || shown != must_be_empty.contains(panel));
    })) << answer.body;
  }
}

}  // namespace
}  // namespace fencepost::test
