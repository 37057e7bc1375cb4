// A sentence where the compiler prints it: as the message itself (C++26), as a template argument that is a text (g++),
// or in words (vocabulary.hpp).
#pragma once

#include <cfp/core/text.hpp>

#if defined(__cpp_static_assert) && __cpp_static_assert >= 202306L
#define CFP_SAYS_MESSAGES
#elif defined(__clang__) || defined(__CUDACC__)
#define CFP_SAYS_WORDS
#include <cfp/core/vocabulary.hpp>
#endif

namespace cfp::inline v0_1 {

#if defined(CFP_SAYS_WORDS)
/// A sentence in words; `in_words<>` is silence.
template <lit Sentence>
using said = typename detail::spelled_out<Sentence>::type;
#else
/// A sentence as it is; `said<"">` is silence.
template <lit Sentence>
struct said {
  static constexpr bool silent = Sentence.size() == 0;
  static constexpr const char* data() { return Sentence.data(); }
  static constexpr std::size_t size() { return Sentence.size(); }
};
#endif

}  // namespace cfp
