// Weights of public checkpoints: what is none of the model's is refused by name, prefixes are found, numbers of all
// types come back as they were, and training begins with them. Checkpoints that others write: tests/weights.py.
#include "../catch.hpp"

#include "small.hpp"

#include <cfp/families/token_file.hpp>
#include <cfp/session/session.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace checkpoint_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

struct folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("cfp_checkpoints_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(path); }
  ~folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* file) const { return (path / file).string(); }
};

// Two weights: a of 2x3 numbers, b of 3.
graph two_weights() {
  model net;
  const tensor a = net.weight("a", {{"rows", 2}, {"width", 3}}, {}), b = net.weight("b", {{"width", 3}}, {});
  net.recorded.loss = op<"rows width, width -> rows">{}(a, b).id;
  return net.recorded;
}

void write(const std::string& path, const std::string& header, const std::string& behind) {
  std::ofstream out(path, std::ios::binary);
  for (int byte = 0; byte < 8; ++byte) out.put(static_cast<char>(header.size() >> (8 * byte) & 0xff));
  out << header << behind;
}

std::string entry(const std::string& called, const std::string& type, const std::string& shape, const std::string& at) {
  return "\"" + called + R"(": {"dtype": ")" + type + R"(", "shape": )" + shape + R"(, "data_offsets": )" + at + "}";
}

template <class F>
std::string why(const F& f) {
  try {
    f();
    return "";
  } catch (const bad_input& e) {
    return e.what();
  }
}

const std::string a_entry = entry("a", "F32", "[2, 3]", "[0, 24]"), b_entry = entry("b", "F32", "[3]", "[24, 36]");

}  // namespace

TEST_CASE("what a checkpoint holds must be the model's") {
  const folder files;
  const std::string path = files / "model.safetensors";
  const graph g = two_weights();
  const auto says = [&](const std::string& header, std::size_t bytes = 36) -> std::string {
    write(path, "{" + header + "}", std::string(bytes, '\0'));
    const std::string out = why([&] { checkpoint(path, g); });
    return out.empty() ? out : out.substr(path.size());
  };
  CHECK(says(a_entry + ", " + b_entry) == "");
  CHECK(says(R"("__metadata__": {"format": "pt"}, )" + a_entry + ", " + b_entry) == "");
  CHECK(says(a_entry, 24) == ": tensor 'b' is missing; is it another model's checkpoint?");
  CHECK(says(a_entry + ", " + entry("b", "F32", "[2]", "[24, 32]")) ==
        ": tensor 'b' has shape [2], the model's is [3]");
  CHECK(says(a_entry + ", " + entry("b", "F32", "[3]", "[24, 34]")) ==
        ": tensor 'b' has 10 bytes, which is not what [3] numbers of F32 take");
  CHECK(says(a_entry + ", " + entry("b", "I32", "[3]", "[24, 36]")) ==
        ": tensor 'b' holds \"I32\"; read are \"F64\", \"F32\", \"BF16\" and \"F16\"");
  CHECK(says(a_entry + ", " + b_entry + ", " + entry("c", "F32", "[1]", "[36, 40]"), 40) ==
        ": tensor 'c' is none of this model's weights, and no copy of one; is it another model's checkpoint?");
  CHECK(says(a_entry + ", " + b_entry + ", " + entry("c", "F32", "[3]", "[36, 48]"), 48) == "");  // a copy of b
  CHECK(says(a_entry + ", " + b_entry + ", " + entry("h.3.c", "F32", "[3]", "[36, 48]"), 48) ==
        ": tensor 'h.3.c' is none of this model's weights, and no copy of one; is it another model's checkpoint?");
  CHECK(says(a_entry + ", " + b_entry + ", " + entry("h.0.attn.bias", "U8", "[1, 1, 2, 2]", "[36, 40]"), 40) == "");
  CHECK(says(a_entry + ", " + b_entry + ", " + entry("h.0.attn.bias", "F32", "[1]", "[36, 40]"), 40) ==
        ": tensor 'h.0.attn.bias' is none of this model's weights, and no copy of one; is it another model's "
        "checkpoint?");
  CHECK(says(a_entry + ", " + b_entry, 30) ==
        ": header: tensor 'b' lies at bytes 24 to 36 of 30 behind the header: is the file cut short?");
  CHECK(says(a_entry + ", " + entry("b", "F32", "[3]", "[36, 24]")) ==
        ": header: tensor 'b' lies at bytes 36 to 24 of 36 behind the header: is the file cut short?");
  CHECK(says(a_entry + ", " + entry("b", "F32", "[3]", "[20, 32]")) ==
        ": header: a tensor begins at byte 20 and the one before ends at 24: they share bytes");
  CHECK(says(a_entry + ", " + entry("b", "F32", "[4294967296, 4294967296]", "[24, 36]")) ==
        ": header: tensor 'b'.shape is of more numbers than can be counted");
  CHECK(says(a_entry + ", " + entry("b", "F32", "[-3]", "[24, 36]")) ==
        ": header: tensor 'b'.shape must be of whole numbers, has -3");
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  CHECK(says(a_entry + ", " + entry("b", "F32", deep, "[24, 36]")) ==
        ": header: tensor 'b'.shape must be of whole numbers, has an array");
  CHECK(says(a_entry + ", " + a_entry) == ": header: the key 'a' stands twice in one object");
  CHECK(why([&] { checkpoint(files / "none", g); }) == (files / "none") + ": cannot be read: there is no such file");
  std::filesystem::create_directories(files / "empty");
  CHECK(why([&] { checkpoint(files / "empty", g); }) ==
        (files / "empty") + ": has neither model.safetensors nor model.safetensors.index.json");
}

TEST_CASE("an index says which file has which tensor") {
  const folder files;
  const graph g = two_weights();
  const std::string index = files / "model.safetensors.index.json";
  write(files / "one", "{" + a_entry + "}", std::string(24, '\0'));
  write(files / "two", "{" + entry("b", "BF16", "[3]", "[0, 6]") + "}", std::string(6, '\0'));
  const auto says = [&](const std::string& map) -> std::string {
    std::ofstream(index) << R"({"metadata": {"total_size": 30}, "weight_map": )" << map << "}";
    const std::string out = why([&] { checkpoint(index, g); });
    return out.empty() ? out : out.substr(index.size());
  };
  CHECK(says(R"({"a": "one", "b": "two"})") == "");
  CHECK(says(R"({"a": "one", "b": "one"})") ==
        ": says that tensor 'b' is in " + (files / "one") + ", which has none of that name");
  for (const std::string out : {"../two", "/two", "..", "", "x/two"})
    CHECK(says(R"({"a": "one", "b": ")" + out + "\"}") ==
          ": the file of tensor 'b' must be one beside the index, is '" + out + "'");
  CHECK(says("{}") == ": its 'weight_map' names no tensor");
  CHECK(says("[]") == ": 'weight_map' must be an object, got array");
  CHECK(says(R"({"a": 1})") == ": the file of tensor 'a' must be a text, got number");
  CHECK(says(R"({"a": "one"})") == ": tensor 'b' is missing; is it another model's checkpoint?");
  std::ofstream(index) << R"({"a": "one"})";
  CHECK(why([&] { checkpoint(files.path.string(), g); }) == index + ": it must have 'weight_map'");
  std::ofstream(index) << R"({"weight_map": {"a": "none"}})";
  CHECK(why([&] { checkpoint(index, g); }) == (files / "none") + ": cannot be read: there is no such file");
}

TEST_CASE("numbers of all types come back as they were, joined, apart and behind a prefix") {
  const folder files;
  const graph g = two_weights();
  // a lies by columns and every second row of a larger tensor, which b fills.
  const weight_layout joined = [](const std::string& label, const std::vector<long>&) -> stored_weight {
    if (label == "a") return {{"x.ab"}, {3, 3}, 0, {{2, 1}, {3, 3}}};
    return {{"x.ab"}, {3, 3}, 2, {{3, 3}}};
  };
  const weight_layout rows = [](const std::string& label, const std::vector<long>& shape) {
    stored_weight out = stored_weight::plain(label, {3});
    if (shape.size() == 2) out.tensors = {"a.0", "a.1"};
    return out;
  };
  for (const weight_layout& layout : {weight_layout(), joined, rows})
    for (const char* const type : {"F64", "F32", "BF16", "F16"}) {
      INFO(type);
      new_checkpoint first(files / "first", g, layout, nullptr);
      double n = 1;
      for (const auto& [v, to] : first.weights())
        for (std::size_t i = 0; i < to.size(); ++i) to.set(i, n), n += 1;
      first.commit();
      // As another program has it: in another type, with something before its names.
      const checkpoint read(files / "first", g, layout);
      CHECK(read.weights().at(0)[4] == 5);
      CHECK(read.weights().at(1)[2] == 9);
      const checkpoint_files as_written(files / "first");
      std::string header, bytes;
      const std::size_t wide = width(*stored_type_of(type));
      for (const auto& [called, t] : as_written.tensors()) {
        const std::size_t from = bytes.size(), count = static_cast<std::size_t>(t.elements());
        bytes.resize(from + count * wide);
        const std::vector<std::pair<long, long>> whole{{t.elements(), 1}};
        const stored_numbers in(stored_type::float32, {t.bytes.data()}, 0, whole),
            out(*stored_type_of(type), {reinterpret_cast<std::byte*>(bytes.data()) + from}, 0, whole);
        for (std::size_t i = 0; i < count; ++i) out.set(i, in[i]);
        header += (header.empty() ? "{" : ", ") +
                  entry("model." + called, type, nlohmann::json(t.shape).dump(),
                        "[" + std::to_string(from) + ", " + std::to_string(bytes.size()) + "]");
      }
      write(files / "second", header + "}", bytes);
      const checkpoint second(files / "second", g, layout);
      for (const auto& [v, x] : second.weights())
        for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i] == read.weights().at(v)[i]);
      new_checkpoint third(files / "third", g, layout, &second);
      for (const auto& [v, to] : third.weights())
        for (std::size_t i = 0; i < to.size(); ++i) to.set(i, second.weights().at(v)[i]);
      third.commit();
      const checkpoint_files a(files / "second"), b(files / "third");
      REQUIRE(a.tensors().size() == b.tensors().size());
      for (const auto& [called, t] : a.tensors()) {
        CHECK(b.tensors().at(called).type == type);
        CHECK(b.tensors().at(called).shape == t.shape);
        CHECK(std::equal(t.bytes.begin(), t.bytes.end(), b.tensors().at(called).bytes.begin()));
      }
    }
  const weight_layout hole = [](const std::string& label, const std::vector<long>& shape) {
    stored_weight out = stored_weight::plain(label, shape);
    if (label == "b") out.shape = {4};
    return out;
  };
  CHECK(why([&] { new_checkpoint(files / "new", g, hole, nullptr); }) ==
        (files / "new") + ": tensor 'b' has 1 numbers more than this model has weights in it");
  CHECK_FALSE(std::filesystem::exists(files / "new"));
}

TEST_CASE("training begins with the weights of a checkpoint") {
  const folder files;
  transformer small = tiny_config();
  small.embedding_dropout = small.attention_dropout = small.residual_dropout = 0;  // which depend on the step
  const graph forward = decoder(small);
  const graph g = differentiate(refine(forward));
  session_options o;
  o.mesh = "data=2";
  o.lazy = true;
  session s(forward, o);
  const byte_text text = text_for(g);
  const double begun = s.train(text, 1).loss[0];
  s.save_weights(files / "after");
  const double second = s.train(text, 1).loss[0];
  CHECK(second != begun);

  s.load_weights(files / "after");
  const training_report again = s.train([&](long n) { return text(n + 1); }, 1);
  CHECK(again.first == 1);
  CHECK(again.loss[0] == Approx(second).epsilon(1e-6));  // the rate is another in the first step, its loss is not
  s.load_weights(files / "after");
  const verification v = s.verify([&](long n) { return text(n + 1); }, 2);
  CHECK(v.begun_after == 0);
  CHECK(v.together[0] == Approx(second).epsilon(1e-6));
  CHECK(v.holds());
  s.save_weights(files / "same");
  const checkpoint a(files / "after", g), b(files / "same", g);
  for (const auto& [weight, x] : a.weights())
    for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(b.weights().at(weight)[i] == x[i]);

  {  // one number is none
    new_checkpoint wrong(files / "wrong", g, {}, nullptr);
    for (const auto& [weight, to] : wrong.weights()) to.set(0, 0.5);
    const int weight = g.find("h.0.attn.c_proj.weight");
    REQUIRE(weight >= 0);
    wrong.weights().at(weight).set(5, std::nan(""));
    wrong.commit();
  }
  double beyond[] = {1e38, 1e39};  // of float64, where float32 ends at 3.4e38
  const stored_numbers large(stored_type::float64, {reinterpret_cast<std::byte*>(beyond)}, 0, {{2, 1}});
  CHECK((large[0] == 1e38 && large.not_finite() == stored_numbers::none));
  CHECK((large[1] == 1e39 && large.not_finite() == 1));
  s.load_weights(files / "wrong");
  CHECK(why([&] { s.train(text, 1); }) ==
        (files / "wrong") +
            ": weight 'h.0.attn.c_proj.weight' has numbers that are not finite in float32: take another checkpoint");
  CHECK(why([&] { s.load_weights(files / "none"); }) == (files / "none") + ": cannot be read: there is no such file");
  s.load_weights(files / "after");
  CHECK(s.train([&](long n) { return text(n + 1); }, 1).loss[0] == again.loss[0]);
}

TEST_CASE("tokens of 16 and 32 bits, with a header and without") {
  const folder files;
  const std::string path = files / "tokens.bin";
  const auto put = [&](const auto& numbers, bool more = false) {
    std::ofstream out(path, more ? std::ios::binary | std::ios::app : std::ios::binary);
    out.write(reinterpret_cast<const char*>(numbers.data()),
              static_cast<std::streamsize>(numbers.size() * sizeof numbers[0]));
  };
  const auto header = [&](std::int32_t magic, std::int32_t version, std::int32_t count) {
    std::vector<std::int32_t> h(256);
    h[0] = magic, h[1] = version, h[2] = count;
    put(h);
  };
  const auto says = [&](long vocabulary) { return why([&] { token_file(path, vocabulary); }); };
  const std::vector<std::uint16_t> narrow{1, 65535, 7};
  const std::vector<std::uint32_t> wide{1, 70000, 7};
  put(narrow);
  CHECK(token_file(path, 65536).size() == 3);
  CHECK(token_file(path, 65536)[1] == 65535);
  CHECK(says(65537) == path + ": has 6 bytes, which are no whole tokens of 32 bits");
  CHECK(why([&] { token_file(path, 50257)[1]; }) == path + ": token 1 is 65535, the model has a vocabulary of 50257");
  put(wide);
  CHECK(token_file(path, 128256)[1] == 70000);
  header(20240520, 1, 3);
  put(narrow, true);
  CHECK(token_file(path, 128256).size() == 3);
  CHECK(token_file(path, 128256)[2] == 7);
  header(20240801, 7, 3);
  put(wide, true);
  CHECK(token_file(path, 128256)[1] == 70000);
  header(20240520, 2, 3);
  CHECK(says(100) == path + ": its header is of version 2, read is 1");
  header(20240801, 7, 4);
  put(wide, true);
  CHECK(says(128256) == path + ": its header says 4 tokens of 32 bits, and 12 bytes are behind it; is it cut short?");
  header(20240520, 1, -1);
  CHECK(says(100) == path + ": its header says -1 tokens of 16 bits, and 0 bytes are behind it; is it cut short?");
}

}  // namespace checkpoint_tests
