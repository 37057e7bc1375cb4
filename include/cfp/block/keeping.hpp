// What a part keeps of forward for its backward operations.
#pragma once

#include <cstdint>

namespace cfp::inline v0_1 {

/// What is not kept is computed again in backward, before the first operation that reads it.
struct keeping {
  enum inside_t : std::uint8_t {
    all,
    costly,   ///< of what it reads itself: what contractions compute; the rest is made of that
    leaving,  ///< what other parts read as well
    nothing,
  } inside = all;      ///< of what the part computes
  bool inputs = true;  ///< what it reads of other parts
  friend bool operator==(const keeping&, const keeping&) = default;
};

/// For people, behind the name of a strategy; nothing if all is kept.
constexpr const char* describe(const keeping& k) {
  constexpr const char* texts[2][4] = {{"", ", cheap recomputed", ", inside recomputed", ", recomputed"},
                                       {", inputs recomputed", ", cheap and inputs recomputed",
                                        ", inside and inputs recomputed", ", recomputed with inputs"}};
  return texts[k.inputs ? 0 : 1][k.inside];
}

}  // namespace cfp
