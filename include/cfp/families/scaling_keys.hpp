// What "rope_scaling" of a configuration says of rotary positions.
#pragma once

#include <cfp/families/config_rows.hpp>

#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>

namespace cfp::inline v0_1::families {

namespace detail {

// By how much YaRN's authors make scores of a longer sequence sharper.
inline double sharper(double factor, double by) { return factor <= 1 ? 1 : 0.1 * by * std::log(factor) + 1; }

inline void only_members(const config_file& f, const std::string& key, std::initializer_list<std::string_view> known) {
  for (const auto& [member, value] : f.at(key).items())
    if (std::find(known.begin(), known.end(), member) == known.end())
      throw f.fail(key + "." + member, "says " + value.dump().substr(0, 100) + ", which nobody here knows of its kind");
}

inline void read_ramp(const config_file& f, const std::string& key, transformer& t) {
  only_members(f, key,
               {"rope_type", "type", "factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "mscale",
                "mscale_all_dim", "attention_factor"});
  turn_scaling& s = t.turns;
  const auto number = [&](const char* name, double otherwise) { return f.number(key + "." + name, otherwise); };
  s.kind = turn_scaling_kind::ramp;
  s.original = number("original_max_position_embeddings", static_cast<double>(t.positions));
  s.fast = number("beta_fast", 32), s.slow = number("beta_slow", 1);
  const bool both = f.has(key + ".mscale") && f.has(key + ".mscale_all_dim");
  const double all = number("mscale_all_dim", 0),
               usual = both ? sharper(s.factor, number("mscale", 1)) / sharper(s.factor, all) : sharper(s.factor, 1),
               of_turned = number("attention_factor", usual);
  const bool latent = t.latent.keys > 0;
  if (latent && of_turned != 1)
    throw f.fail(key + ".mscale", "must be mscale_all_dim where a part of each head alone turns");
  s.score_factor = latent ? sharper(s.factor, all) * sharper(s.factor, all) : of_turned * of_turned;
}

}  // namespace detail

/// Slowed frequencies: "linear", "llama3" and "yarn".
inline void rope_scaling(const config_file& f, const char* key, transformer& t) {
  if (!f.has(key)) return;
  const std::string in = std::string(key) + ".";
  if (!f.at(key).is_object()) throw f.fail(key, "must be an object, is " + f.at(key).dump().substr(0, 100));
  const std::string kind = in + (f.has(in + "rope_type") ? "rope_type" : "type");
  if (!f.has(kind)) throw f.fail(in + "rope_type", "is missing");
  turn_scaling& s = t.turns;
  const nlohmann::json& said = f.at(kind);
  if (said == "default") {
    detail::only_members(f, key, {"rope_type", "type"});
    return;
  }
  if (said != "linear" && said != "llama3" && said != "yarn")
    throw f.fail(kind, "must be \"default\", \"linear\", \"llama3\" or \"yarn\", is " + said.dump().substr(0, 100));
  s.factor = f.number(in + "factor");
  if (said == "yarn") return detail::read_ramp(f, key, t);
  s.kind = turn_scaling_kind::all;
  if (said == "linear") return detail::only_members(f, key, {"rope_type", "type", "factor"});
  detail::only_members(
      f, key,
      {"rope_type", "type", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"});
  s.kind = turn_scaling_kind::wavelength;
  s.slow = f.number(in + "low_freq_factor"), s.fast = f.number(in + "high_freq_factor");
  s.original = f.number(in + "original_max_position_embeddings");
  if (s.fast <= s.slow)
    throw f.fail(in + "high_freq_factor", "must be above low_freq_factor, is " + std::to_string(s.fast));
}

}  // namespace cfp::families
