// Scans that an axis splits: halos, rings of attention and states of linear attention equal what one device computes,
// and what neighbours hand on grows with nothing but its border.
#include "common.hpp"
#include "small_families.hpp"

#include "../scanned.hpp"

#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/session/check_gradients.hpp>

#include <cmath>
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

struct seen {
  double loss = 0;
  collective_count sent{};
};
seen run(const made& m, int ranks) {
  const graph& g = m.g;
  const mesh_shape mesh = mesh_of({ranks});
  const program p = scanned::program_along_pieces(g, mesh, sizeof(double));
  const auto on = ranks_for(p, kernels_of<weighed_t>());
  seen out;
  out.sent = count_collectives(p, g);
  on->run([&](rank& r) {
    const auto e = r.load(p, g, 3);
    for (const auto& [label, x] : m.given) e->give(g.find(label), std::span<const double>(x));
    e->step(1, 1);
    if (r.number() == 0) out.loss = e->loss();
  });
  return out;
}

long bytes_of(const collective_count& n, collective_kind k) { return n.bytes[static_cast<std::size_t>(k)]; }

// States between pieces of random numbers: what a model of them loses, and serially, S <- kept S + x.
struct states {
  long rows, pieces, keys, values;  // of sequences and heads together, ...

  made model_of(std::mt19937& random) const {
    model net;
    const dimension b{"rows", rows}, p{"pieces", pieces}, k{"keys", keys}, v{"values", values};
    const tensor x = net.input("x", {b, p, k, v}, element::real, {0.0, 1.0});
    const tensor kept = net.input("kept", {b, p, k}, element::real, {0.0, 1.0});
    made m = finished(net, state_before(x, kept), {b, p, k, v});
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
      CHECK(bytes_of(got.sent, collective_kind::all_scan) == (ranks > 1 ? some.border() : 0));
      // To gather what pieces leave, as is done without (LASP-2), grows with both.
      CHECK(bytes_of(got.sent, collective_kind::all_gather) == 0);
      if (ranks > 2) CHECK(bytes_sent(collective_kind::all_gather, pieces * some.border(), ranks) > 2 * some.border());
    }
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
    CHECK(bytes_of(got.sent, collective_kind::all_scan) ==
          (ranks > 1 ? batch_rows * heads * depth * depth * static_cast<long>(sizeof(double)) : 0));
    CHECK(bytes_of(got.sent, collective_kind::all_gather) == 0);
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
    CHECK(bytes_of(got.sent, collective_kind::shift) == (ranks > 1 ? 2 * row : 0));
    CHECK(bytes_of(got.sent, collective_kind::all_gather) == 0);
  }
}

TEST_CASE("ring attention, and the halo of a window: a decoder in pieces is the decoder", "[heavy]") {
  for (const char* const name : {"gpt2", "llama-2-7b", "mistral-7b", "gemma-2-9b"}) {
    INFO(name);
    const config_file file(carried(name));
    transformer t = smallest(read_decoder(file));
    t.sequence = 12, t.batch = 2, t.vocabulary = 256, t.window = t.window > 0 ? 5 : 0;
    t.attention_dropout = t.embedding_dropout = t.residual_dropout = 0;
    const graph whole = decoder(t);
    t.pieces = 4;
    const graph pieces = decoder(t);
    session_options o{.mesh = "x=1", .type = number::float64};
    const auto train = [&](const graph& g) {
      session s(g, o);
      text_layout what;
      what.positions = g.find("positions") >= 0;
      return s.train(byte_text(some_text(), 2, 12, 5, what), 4).loss;
    };
    const std::vector<double> expected = train(whole), found = train(pieces);
    for (std::size_t s = 0; s < expected.size(); ++s) CHECK(found[s] == Approx(expected[s]).epsilon(1e-12));
    // Plans at random, among them such as split the pieces: gradients by finite differences, and one rank's.
    gradient_options g;
    g.mesh = "x=4", g.plans = 4, g.elements = 3;
    const gradient_check c = check_gradients(pieces, g);
    INFO(c.json());
    CHECK(c.holds());
  }
}

}  // namespace scans_tests
