// Batches of documents of all lengths, several in a row, that do not see one another.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/model/batch.hpp>
#include <cfp/model/graph.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::families {

/// For decoders that are `packed`, and as a `batch_source`. Each target is the token behind its own, in the document;
/// the last token of each and what is left of a row have none. Rows are as few as are found, and taken in turn.
class packed_rows {
 public:
  /// `packed`: of each row the numbers of its documents, as `packed_few` (solve/packing.hpp) makes them; `rows` rows of
  /// `length` tokens in a batch, where the last one lacks some the first ones again. `positions`: whether the model
  /// asks for places in documents. Throws bad_input for a document of less than 2 tokens, a row that is too long, or
  /// one of more than 256 documents, whose numbers bfloat16 does not tell apart.
  packed_rows(std::vector<std::vector<std::int32_t>> documents, std::vector<std::vector<int>> packed, long rows,
              long length, bool positions = true, long first_position = 0)
      : documents_(std::move(documents)), packed_(std::move(packed)), rows_(rows), length_(length),
        positions_(positions), first_position_(first_position) {
    const auto refuse = [](const std::string& what) { throw bad_input("packed rows: " + what); };
    if (packed_.empty() || rows < 1) refuse("there must be a row or more");
    for (const std::vector<int>& row : packed_) {
      std::size_t tokens = 0;
      for (const int d : row) {
        if (d < 0 || static_cast<std::size_t>(d) >= documents_.size())
          refuse("there is no document " + std::to_string(d) + ", they are " + std::to_string(documents_.size()));
        const std::size_t n = documents_[static_cast<std::size_t>(d)].size();
        if (n < 2) refuse("document " + std::to_string(d) + " has " + std::to_string(n) + " tokens, it must have 2");
        tokens += n;
      }
      if (tokens > static_cast<std::size_t>(length))
        refuse("a row of " + std::to_string(tokens) + " tokens, and rows have " + std::to_string(length));
      if (row.size() > most_documents)
        refuse(std::to_string(row.size()) + " documents in a row, at most " + std::to_string(most_documents) +
               ": take shorter rows");
    }
  }

  /// Rows that all documents take.
  long size() const { return static_cast<long>(packed_.size()); }

  batch operator()(long number) const {
    const auto all = static_cast<std::size_t>(rows_ * length_);
    std::vector<std::int32_t> tokens(all, 0), targets(all, ignored_target),
        at(all, static_cast<std::int32_t>(first_position_));
    std::vector<float> of(all, 0.0f);
    for (long r = 0; r < rows_; ++r) {
      auto to = static_cast<std::size_t>(r * length_);
      float document = 0;
      for (const int d : packed_[static_cast<std::size_t>((number * rows_ + r) % size())]) {
        ++document;
        const std::vector<std::int32_t>& text = documents_[static_cast<std::size_t>(d)];
        for (std::size_t i = 0; i < text.size(); ++i, ++to) {
          tokens[to] = text[i], of[to] = document,
          at[to] = static_cast<std::int32_t>(first_position_ + static_cast<long>(i));
          if (i + 1 < text.size()) targets[to] = text[i + 1];
        }
      }
    }
    batch out;
    out["tokens"] = std::move(tokens), out["targets"] = std::move(targets), out["documents"] = std::move(of);
    if (positions_) out["positions"] = std::move(at);
    return out;
  }

 private:
  static constexpr std::size_t most_documents = 256;

  std::vector<std::vector<std::int32_t>> documents_;
  std::vector<std::vector<int>> packed_;
  long rows_, length_;
  bool positions_;
  long first_position_;
};

}  // namespace cfp::families
