// The data of one pass, and where they come from.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace cfp::inline v0_1 {

/// A whole tensor in row-major order: indices or numbers.
using array = std::variant<std::vector<std::int32_t>, std::vector<float>>;

/// By the label of the input each is for. An array that no input of the model takes is refused.
using batch = std::map<std::string, array>;

/// What is to be trained on: the data of pass `number`, counted from 0 over all steps (step s of n passes, from 1,
/// takes numbers s * n to s * n + n - 1). The same number must give the same data, however often and in whatever order
/// it is asked for; it is asked by one thread at a time.
using batch_source = std::function<batch(long number)>;

}  // namespace cfp
