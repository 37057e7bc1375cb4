// Conversions on a mesh of a described machine, each found once.
#pragma once

#include <cfp/profile/machine/described_prices.hpp>
#include <cfp/program/known_conversions.hpp>

namespace cfp::inline v0_1 {

/// The cheapest by what is described; for all searches on one mesh, one at a time.
struct described_conversions {
  described_conversions(const machine& m, const mesh_shape& mesh) : prices(m, mesh), known(&prices) {}
  described_conversions(const described_conversions&) = delete;
  described_conversions& operator=(const described_conversions&) = delete;

  const described_prices prices;
  known_conversions known;
};

}  // namespace cfp
