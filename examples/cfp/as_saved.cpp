#include "as_saved.hpp"

#include <cfp/model/read_mesh.hpp>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace program {

arguments as_saved(arguments a, const cfp::plan_outline& saved) {
  const std::size_t sizes = saved.model.find(" layers=");
  if (sizes == std::string::npos) return a;  // of another program
  const auto take = [&](const char* option, auto& to, const auto& what) {
    if (!a.is_given(option)) to = what, a.given.insert(option);
  };
  if (!a.is_given("--mesh")) a.mesh = cfp::to_string(saved.mesh);
  take("--model", a.model, saved.model.substr(0, sizes));
  std::string type = "float32";
  long rows = a.batch;
  int passes = std::max(1, saved.micro_batches);
  std::istringstream words(saved.model.substr(sizes));
  for (std::string word; words >> word;) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals), value = word.substr(std::min(equals + 1, word.size()));
    const auto number = [&] { return std::strtol(value.c_str(), nullptr, 10); };
    const auto& forms = cfp::optimizer_names;
    if (key == "layers") take("--layers", a.layers, number());
    if (key == "sequence") take("--seq", a.sequence, number());
    if (key == "pieces") take("--pieces", a.pieces, number());
    if (key == "vocabulary") take("--vocabulary", a.vocabulary, number());
    if (key == "gradients") take("--gradients", a.gradients, value);
    if (key == "batch") rows = number();
    if (key == "micro_batches") passes = static_cast<int>(number());
    if (key == "bfloat16") type = key;
    if (std::find(forms.begin(), forms.end(), key) != forms.end()) take("--optimizer", a.optimizers, std::vector{key});
  }
  take("--type", a.type, type);
  take("--micro-batches", a.micro_batches, passes);
  take("--batch", a.batch, rows * passes);
  return a;
}

}  // namespace program
