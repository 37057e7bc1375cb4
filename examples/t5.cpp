// The same for T5: an encoder, and a decoder that reads it.
#include "example.hpp"

int main(int argc, char** argv) {
  return example::run_example(argc, argv, {"T5", "t5-small", [](const config_file& file, const example::asked& asked) {
    file.type({"t5"});
    t5_config c = read_t5(file);
    example::built out;
    example::resize(c, asked, out);
    out.sizes = example::sizes_text({{"layers", c.layers}, {"width", c.width}, {"hidden", c.hidden}, {"heads", c.heads}, {"vocabulary", c.vocabulary},
                                     {"batch", c.batch}, {"sequence", c.sequence}});
    out.inputs.reads = {{"tokens", 0}, {"decoder_tokens", c.sequence}, {"targets", c.sequence + 1}};
    out.inputs.fixed = {{"distances", t5_buckets(c, true)}, {"decoder_distances", t5_buckets(c, false)}};
    out.forward = t5(c);
    return out;
  }});
}
