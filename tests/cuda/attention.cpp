// Fused attention against the operators it stands for, composed in double precision; and their derivative.
#include "../catch.hpp"

#include "tested_device.hpp"

#include <cfp/backend/cuda/attention/attention.hpp>
#include <cfp/op/softmax.hpp>

#include <array>
#include <cmath>
#include <random>

namespace attention_cases {

using namespace cfp;
namespace cuda = cfp::cuda;  // CUDA has one of its own
using cuda::attention_call;
using cuda::attention_tensor;

namespace {

constexpr std::size_t at(long i) { return static_cast<std::size_t>(i); }

template <class T>
constexpr double rounding =
    std::is_same_v<T, bf16> ? 0x1p-8 : 0x1p-11;  // largest relative error of a number stored as T

// Head, group, row and column of a tensor in double precision, for one batch after the other.
struct matrix {
  long heads = 0, group = 0, rows = 0, columns = 0;
  std::vector<double> x{};
  matrix(long batch, long h, long g, long r, long c)
      : heads(h), group(g), rows(r), columns(c), x(at(batch * h * g * r * c)) {}
  double& operator()(long b, long h, long g, long r, long c) {
    return x[at((((b * heads + h) * group + g) * rows + r) * columns + c)];
  }
  double operator()(long b, long h, long g, long r, long c) const { return const_cast<matrix&>(*this)(b, h, g, r, c); }
};

struct sizes {
  long batch = 1, heads = 1, group = 1, queries = 1, keys = 1, depth = 64, first_query = 0, first_key = 0;
  double scale = 1, reach = 0;
};

struct operands {
  matrix q, k, v, d_out;
  explicit operands(const sizes& s)
      : q(s.batch, s.heads, s.group, s.queries, s.depth), k(s.batch, s.heads, 1, s.keys, s.depth), v(k), d_out(q) {}
};

// Results of the composed operators, and for each how far a computation may be off that rounds shares and stored
// numbers to T, and else computes with a relative error of `fine`.
struct reference {
  matrix out, max, sum, dq, dk, dv;
  matrix e_out, e_max, e_sum, e_dq, e_dk, e_dv;
  reference(const sizes& s, const operands& x, double coarse, double fine)
      : out(s.batch, s.heads, s.group, s.queries, s.depth), max(s.batch, s.heads, s.group, s.queries, 1), sum(max),
        dq(out), dk(s.batch, s.heads, 1, s.keys, s.depth), dv(dk), e_out(out), e_max(max), e_sum(max), e_dq(out),
        e_dk(dk), e_dv(dk) {
    for (long b = 0; b < s.batch; ++b)
      for (long h = 0; h < s.heads; ++h)
        for (long g = 0; g < s.group; ++g)
          for (long i = 0; i < s.queries; ++i) row(s, x, coarse, fine, b, h, g, i);
    finish(coarse, e_out, out);
    finish(coarse, e_dq, dq);
    finish(coarse, e_dk, dk);
    finish(coarse, e_dv, dv);
  }

 private:
  static constexpr double smallest = 0x1p-25;  // half the step between the smallest numbers of half precision

  void row(const sizes& s, const operands& x, double coarse, double fine, long b, long h, long g, long i) {
    std::vector<double> score(at(s.keys)), share(at(s.keys)), d_share(at(s.keys));
    double& top = max(b, h, g, i, 0) = -INFINITY;
    double& all = sum(b, h, g, i, 0) = 0;
    double sizes_of_scores = 0;  // the largest: what a score's error is relative to
    const long query = s.first_query + i;
    for (long j = 0; j < s.keys; ++j) {
      double size = 0;
      for (long d = 0; d < s.depth; ++d) {
        score[at(j)] += x.q(b, h, g, i, d) * x.k(b, h, 0, j, d);
        size += s.scale * std::fabs(x.q(b, h, g, i, d) * x.k(b, h, 0, j, d));
      }
      sizes_of_scores = std::max(sizes_of_scores, size);
      top = std::max(top, masked_max.apply(score[at(j)], s.scale, s.reach, query, s.first_key + j));
    }
    for (long j = 0; j < s.keys; ++j)
      all += masked_sum.apply(score[at(j)], top, s.scale, s.reach, query, s.first_key + j);
    fine *= 1 + sizes_of_scores;
    e_max(b, h, g, i, 0) = fine;
    e_sum(b, h, g, i, 0) = fine * all;
    double dot = 0, e_dot = 0;
    for (long j = 0; j < s.keys; ++j)
      share[at(j)] = masked_softmax.apply(score[at(j)], top, all, s.scale, s.reach, query, s.first_key + j);
    for (long d = 0; d < s.depth; ++d) {
      double e = 0;
      for (long j = 0; j < s.keys; ++j) {
        out(b, h, g, i, d) += share[at(j)] * x.v(b, h, 0, j, d);
        e += ((coarse + fine) * share[at(j)] + smallest) * std::fabs(x.v(b, h, 0, j, d));
      }
      e_out(b, h, g, i, d) = e;
      const double stored = e + coarse * std::fabs(out(b, h, g, i, d)) + smallest;
      dot += out(b, h, g, i, d) * x.d_out(b, h, g, i, d);
      e_dot += (stored + fine * std::fabs(out(b, h, g, i, d))) * std::fabs(x.d_out(b, h, g, i, d));
    }
    for (long j = 0; j < s.keys; ++j) {
      if (share[at(j)] == 0) continue;
      double e = e_dot + fine * std::fabs(dot);
      for (long d = 0; d < s.depth; ++d) {
        d_share[at(j)] += x.d_out(b, h, g, i, d) * x.v(b, h, 0, j, d);
        e += fine * std::fabs(x.d_out(b, h, g, i, d) * x.v(b, h, 0, j, d));
      }
      const double d_score = share[at(j)] * (d_share[at(j)] - dot);
      const double e_score = share[at(j)] * e + (coarse + fine) * std::fabs(d_score) + smallest;
      for (long d = 0; d < s.depth; ++d) {
        const double q = x.q(b, h, g, i, d), k = x.k(b, h, 0, j, d), y = x.d_out(b, h, g, i, d);
        dq(b, h, g, i, d) += s.scale * d_score * k;
        dk(b, h, 0, j, d) += s.scale * d_score * q;
        dv(b, h, 0, j, d) += share[at(j)] * y;
        e_dq(b, h, g, i, d) += s.scale * e_score * std::fabs(k);
        e_dk(b, h, 0, j, d) += s.scale * e_score * std::fabs(q);
        e_dv(b, h, 0, j, d) += ((coarse + fine) * share[at(j)] + smallest) * std::fabs(y);
      }
    }
  }
  static void finish(double coarse, matrix& e, const matrix& x) {
    for (std::size_t i = 0; i < x.x.size(); ++i) e.x[i] = e.x[i] * (1 + coarse) + coarse * std::fabs(x.x[i]) + smallest;
  }
};

// Memory of 16-bit numbers in which a tensor lies; everything else there is no number.
template <class T>
struct memory {
  std::vector<T> numbers;
  explicit memory(long count) : numbers(at(count), T(NAN)) {}
  attention_tensor at_place(long offset, long batch, long head, long group, long row) {
    return {numbers.data() + offset, batch, head, group, row};
  }
};

template <class T>
T& element(const attention_tensor& t, long b, long h, long g, long r, long c) {
  return static_cast<T*>(t.data)[b * t.batch + h * t.head + g * t.group + r * t.row + c];
}

// Visits the elements of a tensor and of its double.
template <class T, class Matrix, class Visit>
void visit(const attention_tensor& t, Matrix& m, const Visit& v) {
  const long batch = static_cast<long>(m.x.size()) / std::max(1L, m.heads * m.group * m.rows * m.columns);
  for (long b = 0; b < batch; ++b)
    for (long h = 0; h < m.heads; ++h)
      for (long g = 0; g < m.group; ++g)
        for (long r = 0; r < m.rows; ++r)
          for (long c = 0; c < m.columns; ++c) v(element<T>(t, b, h, g, r, c), m(b, h, g, r, c));
}

// How queries and keys lie: head after head; position after position; or in one tensor as a fused projection gives
// them, with a gap between positions.
enum class layout { heads, positions, fused };

template <class T>
struct tensors {
  std::vector<memory<T>> held{};
  attention_tensor q{}, k{}, v{}, out{};

  tensors(const sizes& s, layout l) {
    held.reserve(4);
    const long hq = s.heads * s.group, d = s.depth, longest = std::max(s.queries, s.keys);
    if (l == layout::fused) {
      const long row = (hq + 2 * s.heads) * d + 8;
      held.emplace_back(s.batch * longest * row);
      q = held[0].at_place(0, longest * row, s.group * d, d, row);
      k = held[0].at_place(hq * d, longest * row, d, 0, row);
      v = held[0].at_place((hq + s.heads) * d, longest * row, d, 0, row);
    } else {
      while (held.size() < 3) {
        const bool queries = held.empty();
        const long heads = queries ? hq : s.heads, rows = queries ? s.queries : s.keys, group = queries ? s.group : 1;
        attention_tensor& x = queries ? q : held.size() == 1 ? k : v;
        held.emplace_back(s.batch * heads * rows * d);
        x = l == layout::heads ? held.back().at_place(0, heads * rows * d, group * rows * d, rows * d, d)
                               : held.back().at_place(0, heads * rows * d, group * d, d, heads * d);
        if (!queries) x.group = 0;
      }
    }
    held.emplace_back(s.batch * s.queries * hq * d);  // merged heads
    out = held.back().at_place(0, s.queries * hq * d, s.group * d, d, hq * d);
  }
  // The same where kernels find them.
  tensors(tested::device& on, tensors& host) : q(host.q), k(host.k), v(host.v), out(host.out) {
    for (auto& m : host.held) {
      const long bytes = static_cast<long>(m.numbers.size() * sizeof(T));
      auto* const there = static_cast<std::byte*>(on.place(m.numbers.data(), bytes));
      attention_tensor* const all[] = {&q, &k, &v, &out};
      attention_tensor* const here[] = {&host.q, &host.k, &host.v, &host.out};
      for (int i = 0; i < 4; ++i)
        if (const auto at =
                reinterpret_cast<std::intptr_t>(here[i]->data) - reinterpret_cast<std::intptr_t>(m.numbers.data());
            at >= 0 && at < bytes)
          all[i]->data = there + at;
    }
  }
  // How many of the numbers are none.
  std::size_t none() const {
    std::size_t n = 0;
    for (const auto& m : held)
      for (const T x : m.numbers) n += std::isnan(static_cast<float>(x)) ? 1 : 0;
    return n;
  }
};

template <class T>
void fill(matrix& m, std::mt19937& random, double size) {
  std::normal_distribution<double> normal(0, size);
  for (double& x : m.x) x = static_cast<double>(static_cast<float>(T(static_cast<float>(normal(random)))));
}

// What a run gives: the memory of all results.
template <class T>
struct results {
  tensors<T> of, gradients;
  std::vector<float> max, sum;
  bool operator==(const results& o) const {
    return std::memcmp(max.data(), o.max.data(), 4 * max.size()) == 0 &&
           std::memcmp(sum.data(), o.sum.data(), 4 * sum.size()) == 0 && same(of, o.of) && same(gradients, o.gradients);
  }
  static bool same(const tensors<T>& a, const tensors<T>& b) {
    for (std::size_t i = 0; i < a.held.size(); ++i)
      if (std::memcmp(a.held[i].numbers.data(), b.held[i].numbers.data(), 2 * a.held[i].numbers.size()) != 0)
        return false;
    return true;
  }
};

template <class T>
results<T> run(const sizes& s, layout l, const operands& x, unsigned order, const auto& forward, const auto& backward) {
  const long rows = s.batch * s.heads * s.group * s.queries;
  results<T> r{{s, l}, {s, l}, std::vector<float>(at(rows), NAN), std::vector<float>(at(rows), NAN)};
  tensors<T> d_out(s, layout::positions);
  const auto write = [](T& to, double from) { to = T(static_cast<float>(from)); };
  visit<T>(r.of.q, x.q, write);
  visit<T>(r.of.k, x.k, write);
  visit<T>(r.of.v, x.v, write);
  visit<T>(d_out.q, x.d_out, write);
  tested::device on(order);
  const tensors<T> of(on, r.of), gradients(on, r.gradients), of_out(on, d_out);
  const auto floats = [&](std::vector<float>& v) {
    return static_cast<float*>(on.place(v.data(), static_cast<long>(4 * v.size())));
  };
  attention_call c{s.batch,       s.heads,       s.group,  s.queries,   s.keys,      s.depth,     s.first_query,
                   s.first_key,   s.scale,       s.reach,  of.q,        of.k,        of.v,        of.out,
                   floats(r.max), floats(r.sum), of_out.q, gradients.q, gradients.k, gradients.v, nullptr};
  std::vector<cuda::pack<float, 4>> workspace(at(cuda::attention_workspace(c)) / 16, {{NAN, NAN, NAN, NAN}});
  c.workspace =
      static_cast<decltype(c.workspace)>(on.place(workspace.data(), static_cast<long>(16 * workspace.size())));
  REQUIRE(cuda::attention_fits(c));
  on.run([&] {
    forward(on.main(), c);
    backward(on.main(), c);
  });
  return r;
}

template <class T>
results<T> run(const sizes& s, layout l, const operands& x, unsigned order) {
  return run<T>(
      s, l, x, order, [](const auto& queue, const attention_call& c) { cuda::run_attention_forward<T>(queue, c); },
      [](const auto& queue, const attention_call& c) { cuda::run_attention_backward<T>(queue, c); });
}

// The largest share of its bound that an element's error takes; what should not be a number, or is none, takes
// infinity.
template <class T>
double worst(const attention_tensor& t, const matrix& m, const matrix& e) {
  double out = 0;
  std::size_t i = 0;
  visit<T>(t, m, [&](const T& x, double want) {
    const double off = static_cast<double>(static_cast<float>(x)) == want
                           ? 0
                           : std::fabs(static_cast<double>(static_cast<float>(x)) - want) / e.x[i];
    out = std::isnan(off) ? everywhere : std::max(out, off);
    ++i;
  });
  return out;
}

template <class T>
void compare(const sizes& s, const results<T>& r, const operands& x) {
  const reference want(s, x, rounding<T>, tested::device::matrix_error);
  CAPTURE(s.batch, s.heads, s.group, s.queries, s.keys, s.depth, s.first_query, s.first_key, s.scale, s.reach,
          rounding<T>);
  attention_tensor max{const_cast<float*>(r.max.data()), s.heads * s.group * s.queries, s.group * s.queries, s.queries,
                       1},
      sum = max;
  sum.data = const_cast<float*>(r.sum.data());
  CHECK(worst<float>(max, want.max, want.e_max) <= 1);
  CHECK(worst<float>(sum, want.sum, want.e_sum) <= 1);
  CHECK(worst<T>(r.of.out, want.out, want.e_out) <= 1);
  CHECK(worst<T>(r.gradients.q, want.dq, want.e_dq) <= 1);
  CHECK(worst<T>(r.gradients.k, want.dk, want.e_dk) <= 1);
  CHECK(worst<T>(r.gradients.v, want.dv, want.e_dv) <= 1);
  std::size_t gaps = r.gradients.none(), out = want.out.x.size();  // nothing is written beside the results
  CHECK(gaps == r.of.none() + out);
}

template <class T>
operands random_operands(const sizes& s, std::mt19937& random) {
  operands x(s);
  fill<T>(x.q, random, 1);
  fill<T>(x.k, random, 1);
  fill<T>(x.v, random, 1);
  fill<T>(x.d_out, random, 1);
  return x;
}

template <class T>
void check(const sizes& s, layout l, unsigned seed, bool both_orders = false) {
  std::mt19937 random(seed);
  const operands x = random_operands<T>(s, random);
  const results<T> r = run<T>(s, l, x, seed);
  compare<T>(s, r, x);
  if (both_orders) CHECK(r == run<T>(s, l, x, seed + 1));
}

}  // namespace

TEST_CASE("attention: the reference's gradients are its finite differences") {
  const sizes s{1, 2, 2, 5, 6, 8, 2, 0, .4, 1};
  std::mt19937 random(5);
  operands x = random_operands<float>(s, random);
  const reference want(s, x, 0, 0);
  const auto loss = [&] {
    const reference r(s, x, 0, 0);
    double sum = 0;
    for (std::size_t i = 0; i < r.out.x.size(); ++i) sum += r.out.x[i] * x.d_out.x[i];
    return sum;
  };
  const auto agree = [&](matrix& of, const matrix& gradient) {
    for (std::size_t i = 0; i < of.x.size(); ++i) {
      const double kept = of.x[i], step = 1e-5;
      of.x[i] = kept + step;
      const double above = loss();
      of.x[i] = kept - step;
      const double below = loss();
      of.x[i] = kept;
      CHECK(gradient.x[i] == Approx((above - below) / (2 * step)).margin(1e-8));
    }
  };
  agree(x.q, want.dq);
  agree(x.k, want.dk);
  agree(x.v, want.dv);
}

TEST_CASE("attention: lengths around the tiles, causal") {
  for (const long n : {1L, 33L, 63L, 64L, 65L, 127L, 128L, 129L}) {
    check<bf16>({1, 1, 1, n, n, 64, 0, 0, .125, causal}, layout::heads, static_cast<unsigned>(n));
    check<fp16>({1, 1, 1, n, n, 128, 0, 0, .0884, causal}, layout::fused, static_cast<unsigned>(n));
  }
}

TEST_CASE("attention: queries and keys of different lengths and places, any reach") {
  for (const double reach : {causal, -3.0, 40.0, .5, everywhere, -everywhere}) {
    check<bf16>({1, 2, 1, 40, 150, 64, 110, 0, .125, reach}, layout::positions, 1);
    check<fp16>({2, 1, 1, 150, 40, 96, 3, 20, .1, reach}, layout::fused, 2);
  }
  check<bf16>({1, 1, 1, 1, 300, 128, 299, 0, .09, causal}, layout::heads, 3);
  check<bf16>({1, 1, 1, 300, 1, 64, 0, 150, .125, causal}, layout::heads, 4);
  check<bf16>({1, 1, 1, 20, 30, 64, 1L << 40, 1L << 40, .125, causal}, layout::heads, 5);
  check<bf16>({1, 1, 1, 20, 0, 64, 0, 0, .125, causal}, layout::heads, 6);
  check<bf16>({1, 1, 1, 0, 20, 64, 0, 0, .125, causal}, layout::heads, 7);
}

TEST_CASE("attention: groups, depths between tiles, layouts, and the same bits in any order") {
  for (const layout l : {layout::heads, layout::positions, layout::fused}) {
    check<bf16>({2, 2, 3, 70, 70, 48, 0, 0, .14, causal}, l, 11, true);
    check<fp16>({1, 2, 2, 65, 65, 80, 0, 0, .11, causal}, l, 12, true);
    check<bf16>({1, 1, 2, 130, 130, 120, 0, 0, .09, everywhere}, l, 13);
  }
}

TEST_CASE("attention: random cases") {
  std::mt19937 random(17);
  const auto below = [&](long n) { return static_cast<long>(random() % static_cast<unsigned long>(n)); };
  for (unsigned i = 0; i < 10; ++i) {
    sizes s{1 + below(2),   1 + below(2),        1 + below(3), 1 + below(200),
            1 + below(200), 8 * (1 + below(16)), below(100),   below(60)};
    s.scale = .02 + static_cast<double>(below(20)) / 100;
    s.reach = std::array{causal, everywhere, static_cast<double>(below(80) - 40)}[at(below(3))];
    const layout l = std::array{layout::heads, layout::positions, layout::fused}[at(below(3))];
    if (i % 2 == 0) check<bf16>(s, l, i);
    else check<fp16>(s, l, i);
  }
}

TEST_CASE("attention: large scores neither overflow nor lose the largest") {
  const sizes s{1, 1, 1, 70, 70, 64, 0, 0, 1, causal};
  std::mt19937 random(23);
  operands x = random_operands<bf16>(s, random);
  fill<bf16>(x.q, random, 4);
  fill<bf16>(x.k, random, 4);
  compare<bf16>(s, run<bf16>(s, layout::heads, x, 0), x);
}

TEST_CASE("attention: other tiles") {
  const sizes s{1, 2, 2, 100, 90, 64, 0, 0, .125, 5};
  std::mt19937 random(29);
  const operands x = random_operands<bf16>(s, random);
  const auto launch = [](const auto& queue, const auto& k) { queue.launch(k, k.blocks(), k.shared_bytes); };
  compare<bf16>(s,
                run<bf16>(
                    s, layout::heads, x, 0,
                    [&](const auto& queue, const attention_call& c) {
                      launch(queue, cuda::attention_forward<bf16, 64, 64, 32, 16>{cuda::attention_view(c)});
                    },
                    [&](const auto& queue, const attention_call& c) {
                      const cuda::attention_view v(c);
                      launch(queue, cuda::attention_rows<bf16>{v});
                      launch(queue, cuda::attention_query_gradient<bf16, 64, 64, 64, 16>{v});
                      launch(queue, cuda::attention_key_gradient<bf16, 64, 64, 16, 16>{v});
                    }),
                x);
}

// In shared memory, the same chunk of 8 neighbouring rows lies in different banks, and places lie where `further` says.
template <int D>
void check_places() {
  using tile = cuda::attention_tile<bf16, D>;
  std::vector<bool> taken(at(32 * tile::chunks));
  for (int row = 0; row < 32; row += 8)
    for (int chunk = 0; chunk < tile::chunks; ++chunk) {
      unsigned banks = 0;
      for (int r = row; r < row + 8; ++r) {
        const int place = tile::place(r, chunk);
        banks |= 1u << place / 8 % 8;
        taken.at(at(place / 8)) = true;
        CHECK(place == tile::further(tile::place(r % 8, chunk % 2), row, chunk - chunk % 2));
      }
      CHECK(banks == 255u);
    }
  CHECK(std::count(taken.begin(), taken.end(), true) == 32 * tile::chunks);
}
TEST_CASE("attention: tiles in shared memory") {
  check_places<32>();
  check_places<64>();
  check_places<96>();
  check_places<128>();
}

TEST_CASE("attention: what the kernels refuse") {
  alignas(16) static bf16 numbers[64];
  attention_call c;
  c.queries = c.keys = 1;
  c.depth = 64;
  c.q = c.k = c.v = c.out = {numbers, 64, 64, 0, 64};
  CHECK(cuda::attention_fits(c));
  const auto refused = [&](const auto& change) {
    attention_call other = c;
    change(other);
    return !cuda::attention_fits(other);
  };
  CHECK(refused([](attention_call& x) { x.depth = 136; }));
  CHECK(refused([](attention_call& x) { x.depth = 20; }));
  CHECK(refused([](attention_call& x) { x.scale = 0; }));
  CHECK(refused([](attention_call& x) { x.scale = -1; }));
  CHECK(refused([](attention_call& x) { x.k.row = 60; }));
  CHECK(refused([](attention_call& x) { x.v.group = 64; }));
  CHECK(refused([](attention_call& x) { x.keys = 1L << 40; }));
  CHECK(refused([](attention_call& x) { x.q.data = numbers + 1; }));
  c.batch = 2, c.heads = 3, c.group = 4, c.queries = 65;
  CHECK(cuda::attention_workspace(c) == 2 * 3 * 4 * 128 * 8);
}

}  // namespace attention_cases
