// A rule as it is put together from shapes: factors with their sizes, and which of them each dimension is made of.
#pragma once

#include <cfp/core/parse.hpp>
#include <cfp/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::graphs {

/// A word that can name a dimension and is none of those that are taken: "seq", "seq_2".
inline std::string free_name(std::string_view wanted, const std::vector<std::string>& taken) {
  std::string word;
  for (const char c : wanted.substr(0, 18)) word += is_name_character(c) ? c : '_';
  if (word.empty()) word = "d";
  for (const std::string_view reserved : {"partial", "partial_max", "partial_min", "replicated"})
    if (word == reserved) word += "_";
  std::string out = word;
  for (int n = 2; std::find(taken.begin(), taken.end(), out) != taken.end(); ++n) out = word + "_" + std::to_string(n);
  return out;
}

/// What a dimension that nobody named is called: "d768".
inline std::string name_of_size(long size) { return "d" + std::to_string(size); }

/// The factors of each dimension of a tensor, the major one first.
using factor_lists = std::vector<std::vector<int>>;

struct rule_sketch {
  struct factor {
    std::string label;
    long size = 0;
    bool whole = false, one_hot = false;
  };
  std::vector<factor> factors;
  std::vector<factor_lists> operands, results;
  bool takes_maximum = false, takes_minimum = false;  ///< over what no result has; else the sum

  /// A new factor, called so or, where that name is taken, alike.
  int add(std::string_view wanted, long size, bool whole = false) {
    std::vector<std::string> taken;
    for (const factor& f : factors) taken.push_back(f.label);
    factors.push_back({free_name(wanted, taken), size, whole});
    return static_cast<int>(factors.size()) - 1;
  }
  const factor& operator[](int f) const { return factors[static_cast<std::size_t>(f)]; }
  factor& operator[](int f) { return factors[static_cast<std::size_t>(f)]; }

  /// "batch seq d768, d768 d3072 -> batch seq d3072".
  std::string text() const {
    std::string out = tensors(operands) + " ->" + (results.empty() ? "" : " ") + tensors(results);
    out += mark("whole", [](const factor& f) { return f.whole; });
    out += mark("onehot", [](const factor& f) { return f.one_hot; });
    if (takes_maximum || takes_minimum)
      out += mark(takes_maximum ? "max" : "min", [&](const factor& f) { return is_reduced(f); });
    return out;
  }
  /// The sizes of its factors as they stand in the rule that is read from its text.
  factor_sizes sizes_in(const rule& r) const {
    factor_sizes out;
    for (const cfp::factor& f : r.factors)
      for (const factor& mine : factors)
        if (f.label == mine.label) out.push(mine.size);
    return out;
  }
  long size_of(const std::vector<int>& dimension) const {
    long out = 1;
    for (const int f : dimension) out *= (*this)[f].size;
    return out;
  }
  bool stands_in(const std::vector<factor_lists>& tensors, int f) const {
    for (const factor_lists& t : tensors)
      for (const std::vector<int>& d : t)
        if (std::find(d.begin(), d.end(), f) != d.end()) return true;
    return false;
  }

 private:
  bool is_reduced(const factor& f) const {
    const int number = static_cast<int>(&f - factors.data());
    return stands_in(operands, number) && !stands_in(results, number);
  }
  template <class Wanted>
  std::string mark(const char* what, const Wanted& wanted) const {
    std::string out;
    for (const factor& f : factors)
      if (wanted(f)) out += " " + f.label;
    return out.empty() ? out : "; " + (what + out);
  }
  std::string tensors(const std::vector<factor_lists>& all) const {
    std::string out;
    for (std::size_t t = 0; t < all.size(); ++t) {
      if (t > 0) out += ", ";
      for (std::size_t d = 0; d < all[t].size(); ++d) {
        const std::vector<int>& parts = all[t][d];
        if (d > 0) out += ' ';
        if (parts.size() > 1) out += '(';
        for (std::size_t k = 0; k < parts.size(); ++k) out += (k > 0 ? " " : "") + (*this)[parts[k]].label;
        if (parts.size() > 1) out += ')';
      }
    }
    return out;
  }
};

}  // namespace cfp::graphs
