// The same for mixtures of experts: GShard's (model_type "gshard") and Mixtral's ("mixtral").
#include "example.hpp"

int main(int argc, char** argv) {
  return example::run_example(argc, argv, {"Mixture of experts", "alpa-moe-380m", [](const config_file& file, const example::asked& asked) {
    const bool is_mixtral = file.type({"gshard", "mixtral"}) == "mixtral";
    gpt_config g = is_mixtral ? gpt_config{} : read_gpt(file);
    llama_config l = is_mixtral ? read_llama(file) : llama_config{};
    experts_config e = read_experts(file);
    example::built out;
    if (is_mixtral) example::resize(l, asked, out);
    else example::resize(g, asked, out);
    example::fits(is_mixtral ? "max_position_embeddings" : "n_positions", asked.sequence, is_mixtral ? l.positions : g.positions, file);
    e.group = routed_together(e, asked.batch, asked.sequence, asked.least_groups);
    if (asked.batch * asked.sequence % e.group != 0)
      throw bad_input("--batch " + std::to_string(asked.batch) + " sequences do not make whole groups of " + std::to_string(e.group / asked.sequence) + " (group_size of " + file.path + ")");
    out.sizes = example::sizes_text({{"layers", out.layers}, {"width", is_mixtral ? l.width : g.width}, {"heads", is_mixtral ? l.heads : g.heads}, {"experts", e.count},
                                     {"choices", e.choices}, {"hidden", e.hidden}, {"vocabulary", out.vocabulary}, {"batch", asked.batch}, {"sequence", asked.sequence}, {"group", e.group}});
    out.forward = is_mixtral ? mixtral(l, e) : gshard(g, e);
    return out;
  }});
}
