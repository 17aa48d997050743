// Command-line words and JSON for the bench programs: no more of either than they need.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::bench {

inline std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  std::stringstream stream(list);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

// `--name value` pairs over defaults, which also say what names there are.
class Arguments {
 public:
  Arguments(int argc, char** argv, std::map<std::string, std::string> defaults) : values_(std::move(defaults)) {
    for (int i = 1; i < argc; i += 2) {
      const std::string word = argv[i];
      const std::string name = word.starts_with("--") ? word.substr(2) : word;
      if (!values_.contains(name) || i + 1 == argc) throw std::invalid_argument(usage(word));
      values_[name] = argv[i + 1];
    }
  }

  const std::string& text(const std::string& name) const { return values_.at(name); }
  double number(const std::string& name) const { return std::stod(values_.at(name)); }
  std::vector<std::string> words(const std::string& name) const { return split(values_.at(name)); }

 private:
  std::string usage(const std::string& word) const {
    std::string text = "unexpected '" + word + "'; expected --name value with one of:";
    for (const auto& [name, value] : values_) text += "\n  --" + name + "  (now " + value + ")";
    return text;
  }

  std::map<std::string, std::string> values_;
};

inline std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

inline std::string json_numbers(const std::vector<double>& values) {
  std::ostringstream out;
  out.precision(9);
  out << '[';
  for (std::size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : ", ") << values[i];
  out << ']';
  return out.str();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace ringlet::bench
