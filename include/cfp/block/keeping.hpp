// What a part keeps of forward for its backward operations and where, and where its weights and their state rest.
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
    on_host,       ///< as `costly`, and that in memory of the host, from when forward has read it until backward does
  } inside = all;  ///< of what the part computes
  bool inputs = true;           ///< what it reads of other parts
  bool border_on_host = false;  ///< what backward of no other part reads of other segments, likewise
  enum resting_t : std::uint8_t {
    on_device,
    state_on_host,    ///< of its weights; it is on the device for their update
    weights_on_host,  ///< they as well; they are on the device while something reads them, and for their update
  } rests = on_device;

  /// Whether something of forward waits on the host for backward.
  constexpr bool activations_on_host() const { return inside == on_host || border_on_host; }
  friend bool operator==(const keeping&, const keeping&) = default;
};

/// For people, behind the name of a strategy; nothing if all is kept.
inline std::string describe(const keeping& k) {
  constexpr const char* texts[2][5] = {
      {"", ", cheap recomputed", ", inside recomputed", ", recomputed", ", cheap recomputed, the rest on the host"},
      {", inputs recomputed", ", cheap and inputs recomputed", ", inside and inputs recomputed",
       ", recomputed with inputs", ", cheap and inputs recomputed, the rest on the host"}};
  constexpr const char* resting[] = {"", ", state on the host", ", weights and state on the host"};
  return std::string(texts[k.inputs ? 0 : 1][k.inside]) + (k.border_on_host ? ", border on the host" : "") +
         resting[k.rests];
}

}  // namespace cfp
