// Scans that an axis splits: halos, rings of attention and states of linear attention equal what one device computes,
// and what neighbours hand on grows with nothing but its border.
#include "common.hpp"
#include "counted.hpp"
#include "small_families.hpp"

#include "../scanned.hpp"

#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/profile/machine/described_times.hpp>
#include <cfp/session/check_gradients.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

namespace scans_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

constexpr long batch_rows = 2, heads = 3, depth = 4;

// A model whose loss is a sum of y times a number for each place, so that all of y counts; and its given tensors.
struct made {
  graph g;
  std::map<std::string, std::vector<double>> given{};
};
inline constexpr struct weighed_t : op<"..., ... -> ", weighed_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T y, T c) {
    return c * y;
  }
} weighed;
made finished(model& net, tensor y, std::initializer_list<dimension> dims) {
  net.recorded.loss = weighed(y, net.input("places", dims, element::real, {0.0, 1.0})).id;
  return {differentiate(refine(net.recorded))};
}

std::vector<double> drawn(std::mt19937& random, long count) {
  std::vector<double> out;
  for (long i = 0; i < count; ++i) out.push_back(std::uniform_real_distribution<double>(-1, 1)(random));
  return out;
}

// What the communicators of ranks counted in a step.
struct seen {
  double loss = 0;
  std::vector<collective_count> sent{};  // by each

  long by_all(collective_kind k) const {
    long n = 0;
    for (const collective_count& of : sent) n += of.bytes[static_cast<std::size_t>(k)];
    return n;
  }
  long at_most(collective_kind k) const {
    long n = 0;
    for (const collective_count& of : sent) n = std::max(n, of.bytes[static_cast<std::size_t>(k)]);
    return n;
  }
};
seen run(const made& m, int ranks, bool scans = true) {
  const graph& g = m.g;
  const program p = scanned::program_along_pieces(g, mesh_of({ranks}), sizeof(double), scans);
  const auto on = ranks_for(p, kernels_of<weighed_t>());
  seen out;
  out.sent.resize(static_cast<std::size_t>(ranks));
  on->run([&](rank& r) {
    const auto e = r.load(p, g, 3);
    for (const auto& [label, x] : m.given) e->give(g.find(label), std::span<const double>(x));
    r.reset_counted();
    e->step(1, 1);
    out.sent[static_cast<std::size_t>(r.number())] = counted(r);
    if (r.number() == 0) out.loss = e->loss();
  });
  return out;
}

// States between pieces of random numbers: what a model of them loses, and serially, S <- kept S + x.
struct states {
  long rows, pieces, keys, values;  // of sequences and heads together, ...

  made model_of(std::mt19937& random) const {
    model net;
    const dimension b{"rows", rows}, p{"pieces", pieces}, k{"keys", keys}, v{"values", values};
    const tensor x = net.input("x", {b, p, k, v}, element::real, {0.0, 1.0});
    const tensor kept = net.input("kept", {b, p, k}, element::real, {0.0, 1.0});
    made m = finished(net, state_before(scaled(x, 1.0), kept), {b, p, k, v});  // what is given need not be gathered
    const long all = rows * pieces * keys;
    m.given["x"] = drawn(random, all * values), m.given["places"] = drawn(random, all * values);
    m.given["kept"] = drawn(random, all);
    return m;
  }
  double serially(const made& m) const {
    const auto of = [&](const char* label, long at) { return m.given.at(label)[static_cast<std::size_t>(at)]; };
    const long row = keys * values;
    double loss = 0;
    for (long b = 0; b < rows; ++b)
      for (long i = 0; i < row; ++i) {
        double state = 0;
        for (long p = b * pieces; p < (b + 1) * pieces; ++p) {
          loss += of("places", p * row + i) * state;
          state = of("kept", p * keys + i / values) * state + of("x", p * row + i);
        }
      }
    return loss;
  }
  long border() const { return rows * keys * values * static_cast<long>(sizeof(double)); }
};

}  // namespace

TEST_CASE("ZeCO: an all-scan is a serial scan, and sends as much whatever the length and the ranks") {
  std::mt19937 random(3);
  for (const long pieces : {8, 24}) {
    const states some{6, pieces, 4, 5};
    const made m = some.model_of(random);
    for (const int ranks : {1, 2, 4, 8}) {
      const seen got = run(m, ranks);
      CHECK(got.loss == Approx(some.serially(m)).epsilon(1e-12));
      CHECK(got.by_all(collective_kind::all_scan) == (ranks - 1) * some.border());
      CHECK(got.at_most(collective_kind::all_scan) == (ranks > 1 ? some.border() : 0));
      CHECK(got.by_all(collective_kind::all_gather) == 0);
      // To gather what pieces leave (LASP-2) sends more with every one of both.
      const seen gathered = run(m, ranks, false);
      CHECK(gathered.loss == Approx(some.serially(m)).epsilon(1e-12));
      CHECK(gathered.at_most(collective_kind::all_gather) == (ranks - 1) * pieces * some.border() / ranks);
      if (ranks > 2) CHECK(gathered.at_most(collective_kind::all_gather) > 2 * got.at_most(collective_kind::all_scan));
    }
  }
}

TEST_CASE("ZeCO: an all-scan takes P - 2 + K sends of a K-th of a state, less than a gather of all") {
  const states large{32, 8, 32, 64};
  std::mt19937 random(7);
  const made m = large.model_of(random);
  for (const int ranks : {2, 4, 8}) {
    const mesh_shape mesh = mesh_of({ranks});
    const double latency = 1e-6, bandwidth = 1e9, launch = 2e-6;
    const machine on = plain_machine(mesh, 1e12, 1e30, launch, {{latency, bandwidth}});
    const program p = scanned::program_along_pieces(m.g, mesh, sizeof(double));
    const auto hand = std::find_if(p.code.begin(), p.code.end(), [](const auto& i) { return i.communicates(); });
    REQUIRE(hand != p.code.end());
    described_times times(on, mesh);
    const double state = static_cast<double>(large.border()), at_hand = 8 / ranks;  // pieces of a rank
    const double once = (2 + at_hand) * launch + latency + state / 8 / bandwidth;
    CHECK(times(*hand, p, m.g) == Approx(1000 * (launch + (ranks - 2 + 8) * once)).epsilon(1e-9));
    const double gather = collective_seconds(on, group_of(on, mesh, 0), collective_kind::all_gather, ranks * state);
    if (ranks > 2) CHECK(times(*hand, p, m.g) < 1000 * gather);
  }
}

TEST_CASE("ZeCO: large states go on in slices, so that ranks work at the same time") {
  std::mt19937 random(6);
  const states large{32, 4, 32, 64};  // 512 KiB at a border: 8 slices
  const made m = large.model_of(random);
  for (const int ranks : {2, 4}) {
    const program p = scanned::program_along_pieces(m.g, mesh_of({ranks}), sizeof(double));
    const auto hand = std::find_if(p.code.begin(), p.code.end(), [](const auto& i) { return i.communicates(); });
    REQUIRE(hand != p.code.end());
    CHECK(handed_by(p, m.g, *hand, 1).slices() == 8);
    CHECK(run(m, ranks).loss == Approx(large.serially(m)).epsilon(1e-12));
  }
}

TEST_CASE("ZeCO: linear attention in pieces is the sum over all keys before a query") {
  std::mt19937 random(4);
  const long pieces = 4, length = 3, all = pieces * length;
  model net;
  const dimension b{"batch", batch_rows}, h{"heads", heads}, s{"s", all}, d{"depth", depth};
  const auto whole = [&](const char* label) { return net.input(label, {b, h, s, d}, element::real, {0.0, 1.0}); };
  const auto cut = [&](tensor x) { return in_pieces(x, size_of{"pieces", pieces}); };
  const tensor q = whole("q"), k = whole("k"), v = whole("v");
  made m = finished(net, of_pieces(linear_attention(cut(q), cut(k), cut(v))), {b, h, s, d});
  for (const char* const label : {"q", "k", "v", "places"})
    m.given[label] = drawn(random, batch_rows * heads * all * depth);
  const auto at = [&](const char* label, long bh, long i, long c) {
    return m.given[label][static_cast<std::size_t>((bh * all + i) * depth + c)];
  };
  double expected = 0;
  for (long bh = 0; bh < batch_rows * heads; ++bh)
    for (long i = 0; i < all; ++i)
      for (long j = 0; j <= i; ++j) {
        double score = 0, value = 0;
        for (long c = 0; c < depth; ++c)
          score += at("q", bh, i, c) * at("k", bh, j, c), value += at("places", bh, i, c) * at("v", bh, j, c);
        expected += score * value;
      }
  for (const int ranks : {1, 2, 4}) {
    const seen got = run(m, ranks);
    CHECK(got.loss == Approx(expected).epsilon(1e-12));
    const long state = batch_rows * heads * depth * depth * static_cast<long>(sizeof(double));
    CHECK(got.by_all(collective_kind::all_scan) == (ranks - 1) * state);
    CHECK(got.by_all(collective_kind::all_gather) == 0);
  }
}

TEST_CASE("halo: a convolution whose rows are split is that of the whole image, and hands on two rows") {
  std::mt19937 random(5);
  const long rows = 8, columns = 6, in = 2, out = 3;
  model net;
  const dimension b{"batch", batch_rows}, r{"pieces", rows}, c{"columns", columns}, i{"in", in}, o{"out", out};
  const tensor x = net.input("x", {b, r, c, i}, element::real, {0.0, 1.0});
  const auto name_of = [](int dy, int dx) { return "w" + std::to_string(dy + 1) + std::to_string(dx + 1); };
  const tensor y = convolution_3x3(x, [&](int dy, int dx) {
    return net.input(name_of(dy, dx), {i, o}, element::real, {0.0, 1.0});
  });
  made m = finished(net, y, {b, r, c, o});
  m.given = {{"x", drawn(random, batch_rows * rows * columns * in)},
             {"places", drawn(random, batch_rows * rows * columns * out)}};
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) m.given[name_of(dy, dx)] = drawn(random, in * out);
  const auto pixel = [&](const char* label, long n, long row, long column, long channel, long channels) {
    if (row < 0 || row >= rows || column < 0 || column >= columns) return 0.0;
    return m.given[label][static_cast<std::size_t>(((n * rows + row) * columns + column) * channels + channel)];
  };
  double expected = 0;
  for (long n = 0; n < batch_rows; ++n)
    for (long row = 0; row < rows; ++row)
      for (long column = 0; column < columns; ++column)
        for (long to = 0; to < out; ++to)
          for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx)
              for (long from = 0; from < in; ++from)
                expected += pixel("places", n, row, column, to, out) * pixel("x", n, row + dy, column + dx, from, in) *
                            m.given[name_of(dy, dx)][static_cast<std::size_t>(from * out + to)];
  for (const int ranks : {1, 2, 4, 8}) {
    const seen got = run(m, ranks);
    CHECK(got.loss == Approx(expected).epsilon(1e-12));
    const long row = batch_rows * columns * in * static_cast<long>(sizeof(double));
    CHECK(got.by_all(collective_kind::shift) == 2 * (ranks - 1) * row);
    CHECK(got.at_most(collective_kind::shift) == row * std::min(2, ranks - 1));
    CHECK(got.by_all(collective_kind::all_gather) == 0);
  }
}

TEST_CASE("ring attention, and the halo of a window: a decoder in pieces is the decoder", "[heavy]") {
  for (const char* const name : {"gpt2", "llama-2-7b", "mistral-7b", "gemma-2-9b"}) {
    INFO(name);
    const config_file file(carried(name));
    transformer t = smallest(read_decoder(file));
    t.sequence = 12, t.batch = 2, t.vocabulary = 256, t.window = t.window > 0 ? 5 : 0;
    t.attention_dropout = t.embedding_dropout = t.residual_dropout = 0;
    const graph whole = differentiate(refine(decoder(t)));
    t.pieces = 4;
    const graph forward = decoder(t), pieces = differentiate(refine(forward));
    text_layout what;
    what.positions = whole.find("positions") >= 0;
    const byte_text text(some_text(), 2, 12, 5, what);
    const trained expected = train_on(single(whole, sizeof(double)), whole, text, 4, 3);
    const program split = scanned::program_along_pieces(pieces, mesh_of({4}), sizeof(double));
    CHECK(count_collectives(split, pieces).calls[static_cast<std::size_t>(collective_kind::shift)] > 0);
    for (const program& p : {single(pieces, sizeof(double)), split}) {
      const trained found = train_on(p, pieces, text, 4, 3);
      for (std::size_t s = 0; s < expected.loss.size(); ++s)
        CHECK(found.loss[s] == Approx(expected.loss[s]).epsilon(1e-11));
    }
    // Under plans at random: gradients by finite differences, and one rank's.
    gradient_options g;
    g.mesh = "x=4", g.plans = 4, g.elements = 3;
    const gradient_check c = check_gradients(forward, g);
    INFO(c.json());
    CHECK(c.holds());
  }
}

TEST_CASE("attention in pieces refuses what it would compute otherwise") {
  const auto said = [](const char* name, long sequence) -> std::string {
    try {
      build_model(carried(name), {.batch = 1, .sequence = sequence, .layers = 1, .pieces = 4});
    } catch (const bad_input& e) {
      return e.what();
    }
    return "taken";
  };
  CHECK(said("gpt2", 16) == "taken");
  CHECK(said("gpt2", 18) == "attention in 4 pieces: they must divide the sequence, of 18 tokens");
  const std::string begin = "attention in 4 pieces: in this model ", end = "; leave the pieces out";
  CHECK(said("bert-base", 16) == begin + "every token sees those behind it" + end);
  CHECK(said("bloom-560m", 16) == begin + "scores fall with distance (ALiBi)" + end);
  CHECK(said("deepseek-v2-lite", 16) == begin + "keys are latent" + end);
  CHECK_THAT(said("t5-large", 16), Catch::Contains("that of decoders alone") && Catch::Contains("has an encoder"));
  transformer t = smallest(read_decoder(carried("gpt2")));
  t.pieces = 4, t.packed = true;
  CHECK_THROWS_WITH(decoder(t), begin + "rows are of several documents" + end);
}

}  // namespace scans_tests
