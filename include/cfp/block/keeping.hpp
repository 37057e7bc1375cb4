// What a part keeps of forward for its backward operations, and where it keeps the state of its weights.
#pragma once

#include <cstdint>
#include <string>

namespace cfp::inline v0_1 {

/// What is not kept is computed again in backward, before the first operation that reads it.
struct keeping {
  enum inside_t : std::uint8_t {
    all,
    costly,   ///< of what it reads itself: what contractions compute; the rest is made of that
    leaving,  ///< what other parts read as well
    nothing,
  } inside = all;              ///< of what the part computes
  bool inputs = true;          ///< what it reads of other parts
  bool state_on_host = false;  ///< the state of its weights rests in memory of the host, and is there for their update
  friend bool operator==(const keeping&, const keeping&) = default;
};

/// For people, behind the name of a strategy; nothing if all is kept.
inline std::string describe(const keeping& k) {
  constexpr const char* texts[2][4] = {{"", ", cheap recomputed", ", inside recomputed", ", recomputed"},
                                       {", inputs recomputed", ", cheap and inputs recomputed",
                                        ", inside and inputs recomputed", ", recomputed with inputs"}};
  return std::string(texts[k.inputs ? 0 : 1][k.inside]) + (k.state_on_host ? ", state on the host" : "");
}

}  // namespace cfp
