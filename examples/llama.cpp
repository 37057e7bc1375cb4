// The same for LLaMA: RMS norm, rotary embedding, grouped-query attention, SwiGLU.
#include "example.hpp"

int main(int argc, char** argv) {
  return example::run_example(argc, argv, {"LLaMA", "stories15m", [](const config_file& file, const example::asked& asked) {
    file.type({"llama"});
    llama_config c = read_llama(file);
    example::built out;
    example::resize(c, asked, out);
    example::fits("max_position_embeddings", c.sequence, c.positions, file);
    out.sizes = example::sizes_text({{"layers", c.layers}, {"width", c.width}, {"hidden", c.hidden}, {"heads", c.heads}, {"kv_heads", c.kv_heads},
                                     {"vocabulary", c.vocabulary}, {"batch", c.batch}, {"sequence", c.sequence}});
    out.forward = llama(c);
    return out;
  }});
}
