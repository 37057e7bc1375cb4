// A source of batches that is asked for the same ones several times.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/model/batch.hpp>
#include <cfp/model/name_hash.hpp>
#include <cfp/session/option_checks.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace cfp::inline v0_1 {

/// The same source; it throws bad_input where a batch is not what it was before.
inline batch_source repeatable(batch_source source) {
  detail::check(source);
  const auto seen = std::make_shared<std::map<long, std::uint64_t>>();
  return [source = std::move(source), seen](long number) {
    batch out = source(number);
    std::uint64_t hash = 0;
    for (const auto& [label, data] : out)
      std::visit(
          [&, &label = label](const auto& x) {
            const std::string_view bytes(reinterpret_cast<const char*>(x.data()), x.size() * sizeof(x[0]));
            hash = 31 * hash + name_hash(label) + name_hash(bytes);
          },
          data);
    if (const auto [at, fresh] = seen->try_emplace(number, hash); !fresh && at->second != hash)
      throw bad_input("batch " + std::to_string(number) +
                      ": the source gives other data than before; a number must give the same data whenever asked");
    return out;
  };
}

}  // namespace cfp
