// Plans a GPT for CPU ranks, trains a few steps under the plan, verifies it against one rank, and compares it with the
// plans people use. `gpt --help` lists the options.
#include "example.hpp"

int main(int argc, char** argv) {
  return example::run_example(argc, argv, {"GPT-2", "gpt2", [](const config_file& file, const example::asked& asked) {
    file.type({"gpt2"});
    gpt_config c = read_gpt(file);
    example::built out;
    example::resize(c, asked, out);
    example::fits("n_positions", c.sequence, c.positions, file);
    out.sizes = example::sizes_text({{"layers", c.layers}, {"width", c.width}, {"hidden", c.inner()}, {"heads", c.heads}, {"vocabulary", c.vocabulary}, {"batch", c.batch}, {"sequence", c.sequence}});
    out.forward = gpt(c);
    return out;
  }});
}
