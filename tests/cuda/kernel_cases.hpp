// Calls of operators with random sizes and pieces, run by the host's kernels and by those for GPUs.
#pragma once

#include "../catch.hpp"
#include "tested_device.hpp"

#include <cfp/backend/cuda/kernel/kernels.hpp>
#include <cfp/backend/host/kernels.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

extern template class cfp::host::kernels<cfp::fp16>;  // host_kernels_fp16.cpp

namespace kernel_cases {

using namespace cfp;
namespace cuda = cfp::cuda;  // CUDA has one of its own

/// Memory of exactly so many bytes, at a multiple of 16 bytes or just past one; at first no number.
class memory {
 public:
  memory() = default;
  explicit memory(long bytes, long past = 0)
      : bytes_(bytes), past_(past), all_(new line[static_cast<std::size_t>(bytes + past) / sizeof(line) + 1]) {
    std::memset(at(), 0xff, static_cast<std::size_t>(bytes));
  }
  std::byte* at() const { return reinterpret_cast<std::byte*>(all_.get()) + past_; }
  long bytes() const { return bytes_; }

 private:
  struct alignas(16) line {
    std::byte b[16];
  };
  long bytes_ = 0, past_ = 0;
  std::unique_ptr<line[]> all_;
};
inline void* place(tested::device& on, const memory& m) { return on.place(m.at(), m.bytes()); }

/// Numbers of a tensor, stored as T or wide.
template <class T>
struct numbers {
  long count = 0;
  bool wide = false;
  memory held{};

  numbers() = default;
  numbers(long n, bool is_wide, bool even = true)
      : count(n), wide(is_wide || sizeof(T) == 4), held(n * width(), even ? 0 : width()) {}
  long width() const { return wide ? 4 : static_cast<long>(sizeof(T)); }
  float operator[](long i) const {
    if (wide) return reinterpret_cast<const float*>(held.at())[i];
    return static_cast<float>(reinterpret_cast<const T*>(held.at())[i]);
  }
  void set(long i, float x) {
    if (wide) reinterpret_cast<float*>(held.at())[i] = x;
    else reinterpret_cast<T*>(held.at())[i] = T(x);
  }
};

/// What operands are filled with: n: from -2 to 2; p: from 0.5 to 1.5; c: whole numbers from -3 to 3; i: indices below
/// `bound`; t: targets, of which some are ignored.
template <class T>
void fill(numbers<T>& x, char kind, long bound, std::mt19937& random) {
  std::uniform_real_distribution<float> any(-2, 2), positive(0.5f, 1.5f);
  for (long i = 0; i < x.count; ++i) {
    if (kind == 'i' || kind == 't')
      reinterpret_cast<std::int32_t*>(x.held.at())[i] =
          kind == 't' && random() % 3 == 0 ? ignored_target
                                           : static_cast<std::int32_t>(random() % static_cast<unsigned long>(bound));
    else x.set(i, kind == 'p' ? positive(random) : kind == 'c' ? static_cast<float>(random() % 7) - 3 : any(random));
  }
}

/// A difference of sums of n numbers of less than about 8 that were added in another order, in float: each sum is off
/// by less than its n roundings of 2^-24 of what it has come to. A number that is then stored in fewer bits may also be
/// rounded to the other side: the last of 8 or 11 bits.
template <class T>
double bound(long n, float x, bool wide) {
  const double last = wide || sizeof(T) == 4 ? 0.0 : std::is_same_v<T, bf16> ? 1.0 / 128 : 1.0 / 1024;
  return 5e-7 * static_cast<double>(n) * (1 + std::abs(static_cast<double>(x))) +
         std::abs(static_cast<double>(x)) * (last + 1e-5);
}

/// The first element in which two differ by more than the bound of n roundings (0: in any bit), or -1. `made_of`:
/// numbers, rounded before, that they were made of.
template <class T>
long differs(const numbers<T>& a, const numbers<T>& b, long n, const numbers<T>* made_of = nullptr) {
  if (n == 0 && std::memcmp(a.held.at(), b.held.at(), static_cast<std::size_t>(a.held.bytes())) == 0) return -1;
  for (long i = 0; i < a.count; ++i) {
    const float x = a[i], y = b[i];
    if (x == y) continue;
    const float size = made_of == nullptr ? x : std::abs(x) + std::abs((*made_of)[i]);
    if (n == 0 || !(std::abs(static_cast<double>(x) - static_cast<double>(y)) <= bound<T>(n, size, a.wide))) return i;
  }
  return -1;
}

struct sizes {
  std::string_view factor;
  long size;
};

/// How one operator is called.
struct asked {
  const op_info* op;
  std::string_view rule;   ///< empty: the operator's own
  int dots = 0;            ///< what "..." stands for
  std::string_view kinds;  ///< of the operands
  std::vector<double> scalars{};
  std::vector<sizes> fixed{};
  bool same_order = false;  ///< sums are added in the host's order too
};

constexpr long pieces_to_try[] = {1, 1, 2, 3};
constexpr long sizes_to_try[] = {1, 2, 3, 5, 8, 16, 17, 24, 40, 64};

template <class T>
class both_kernels {
 public:
  host::kernels<T> host;
  cuda::kernels<T, tested::device::queue> device;

  /// Throws std::logic_error if there is no such chain.
  template <class Chain, cuda::mapping How>
  const cuda::chain_functions<tested::device::queue>& chain_of() const {
    for (const auto& c : device.chains())
      if (c.info == &cuda::info_of<Chain> && c.how == How) return c;
    throw std::logic_error("the kernels have no such chain");
  }

  /// Runs a call of random sizes on both, and compares.
  void check(const asked& a, unsigned seed) {
    std::mt19937 random(seed);
    operation o;
    o.op = a.op;
    o.r = parse(a.rule.empty() ? a.op->rule : a.rule, a.dots);
    call c, d;
    c.op = &o;
    c.factors = o.r.factors.size();
    std::string text(a.op->label);
    long all = 1;
    for (int f = 0; f < c.factors; ++f) {
      const factor& is = o.r.factors[f];
      c.size[f] = sizes_to_try[random() % (all > 1000 ? 3 : std::size(sizes_to_try))];
      all *= c.size[f];
      for (const sizes& s : a.fixed)
        if (is.label == s.factor) c.size[f] = s.size;
      const long pieces = is.whole ? 1 : pieces_to_try[random() % std::size(pieces_to_try)];
      c.start[f] = c.size[f] * static_cast<long>(random() % static_cast<unsigned long>(pieces));
      o.sizes.push(c.size[f] * pieces);
      text += " " + std::string(is.label.view()) + " " + std::to_string(c.size[f]);
    }
    if (a.op->body == op_body::pieces) lay_pieces(c, o, random);
    c.find_steps();
    for (double s : a.scalars) o.scalars.push(s);
    c.step = 3;
    c.pass = 1;
    c.first = false;
    c.passes = 2;
    c.seed = 77;
    c.forward = 5;
    long vocabulary = 4, reduced = 1, largest = 8;
    bool reduces = false;
    for (int f = 0; f < c.factors; ++f) {
      if (o.r.factors[f].one_hot) vocabulary = o.sizes[f];
      else if (o.r.is_reduction(f) && a.op->body == op_body::map) reduced *= c.size[f], reduces = true;
      if (o.r.factors[f].label == "vocabulary") vocabulary = o.sizes[f];
    }
    for (signed char f : o.r.coordinates) largest = std::max(largest, o.sizes[f]);  // functors may compute with them
    const auto count = [&](const pattern& p) {
      long n = 1;
      for (signed char f : p.factors) n *= c.size[f];
      return n;
    };
    const bool updates = a.op->body == op_body::update || a.op->body == op_body::accumulate;
    const bool even = random() % 4 != 0;
    numbers<T> operand[max_operands], expected[max_results], found[max_results];
    for (int k = 0; k < o.r.operands.size(); ++k) {
      o.operands.push(k);
      const bool index = k == a.op->index_operand, in_place = updates && k != 1;
      operand[k] = numbers<T>(count(o.r.operands[k]), index || in_place || random() % 3 == 0, index || even);
      fill(operand[k], a.kinds[static_cast<std::size_t>(k)], vocabulary, random);
    }
    for (int k = 0; k < o.r.results.size(); ++k) {
      const long n = count(o.r.results[k]);
      const bool wide = updates || reduces || a.op->statistic ||
                        (random() % 3 == 0 && a.op->body != op_body::unstack && a.op->body != op_body::stack);
      expected[k] = numbers<T>(n, wide, even);
      found[k] = numbers<T>(n, wide, even);
      if (updates)
        for (int side = 0; side < 2; ++side) {
          const memory &to = (side == 0 ? expected : found)[k].held, &from = operand[k == 0 ? 0 : k + 1].held;
          std::memcpy(to.at(), from.at(), static_cast<std::size_t>(to.bytes()));
        }
    }
    if (a.op->body == op_body::unstack || a.op->body == op_body::stack)  // the host knows no wide ones
      for (int k = 0; k < o.r.operands.size(); ++k) {
        operand[k] = numbers<T>(operand[k].count, false, even);
        fill(operand[k], 'n', 0, random);
      }
    const auto strides = [&](call_tensor& t, const pattern& p, const numbers<T>& x) {
      long step = 1;
      for (int i = p.factors.size() - 1; i >= 0; --i) {
        t.stride[p.factors[i]] = step;
        step *= c.size[p.factors[i]];
      }
      t.data = x.held.at();
      t.wide = x.wide && sizeof(T) < 4;
    };
    for (int k = 0; k < o.r.operands.size(); ++k) strides(c.operand[k], o.r.operands[k], operand[k]);
    d = c;
    tested::device on(seed % 2);
    for (int k = 0; k < o.r.operands.size(); ++k) d.operand[k].data = place(on, operand[k].held);
    for (int k = 0; k < o.r.results.size(); ++k) {
      strides(c.result[k], o.r.results[k], expected[k]);
      strides(d.result[k], o.r.results[k], found[k]);
      d.result[k].data = place(on, found[k].held);
    }
    host.find (*a.op)(c);
    const auto run = device.find(*a.op);
    const memory workspace(run.workspace != nullptr ? run.workspace(on.main(), d) : 0);
    cuda::step_state state{c.step, c.pass, c.first};
    d.step = d.pass = 0;  // not read
    const cuda::surroundings around{static_cast<cuda::step_state*>(on.place(&state, sizeof(state))),
                                    place(on, workspace)};
    on.run([&] { run.run(on.main(), d, around); });
    INFO(text << (even ? "" : ", not at multiples of 16 bytes") << ", seed " << seed);
    for (int k = 0; k < o.r.results.size(); ++k) {
      const long i = differs(expected[k], found[k],
                             tested::device::roundings * largest / 8 + (!reduces || a.same_order ? 0 : reduced));
      if (i >= 0)
        FAIL_CHECK("result " << k << " element " << i << " is " << found[k][i] << ", expected: " << expected[k][i]);
    }
  }

  // Where pieces begin: of two, one behind the other.
  static void lay_pieces(call& c, const operation& o, std::mt19937& random) {
    const int all = o.r.find("all"), before = o.r.find("before"), next = o.r.find("next");
    const long first = before >= 0 ? c.size[before] : static_cast<long>(random() % 5);
    const long rest = before >= 0 ? 0 : static_cast<long>(random() % 5);
    c.start[all] = static_cast<long>(random() % 3);
    if (before >= 0) c.start[before] = c.start[all];
    c.start[next] = c.start[all] + first;
    c.size[all] = first + c.size[next] + rest;
  }

  /// The step that a sum takes elements from, or -1.
  static int element_source(const cuda::chain_step& s) {
    for (const cuda::chain_source& x : s.sources)
      if (s.op == &info<add_t> && x.step) return x.index;
    return -1;
  }
  /// What is held while rows are gathered is not wide.
  static constexpr bool may_be_wide(const cuda::chain_info& info, int input) {
    return !info.gathers() || info.same_for_all_rows(input);
  }

  /// Runs a chain along rows or element by element, and its operators one after another on the host. Each input's kind
  /// is in `kinds`.
  template <class Chain, cuda::mapping How>
  void check_chain(long rows, long length, std::string_view kinds, const std::vector<double>& scalars, unsigned seed,
                   bool even = true) {
    constexpr cuda::chain_info info = cuda::info_of<Chain>;
    std::mt19937 random(seed);
    tested::device on(seed % 2);
    std::vector<numbers<T>> input(static_cast<std::size_t>(info.inputs)),
        expected(static_cast<std::size_t>(info.steps.size())), found(expected.size());
    cuda::chain_call bound;
    bound.dims = 1;
    bound.size[0] = rows;
    bound.start[0] = rows * static_cast<long>(random() % 3);
    bound.length = length;
    bound.first = length * static_cast<long>(random() % 2);
    bool any_reduced = false;
    for (int s = 0; s < info.steps.size(); ++s) {
      const cuda::chain_step& here = info.steps[s];
      operation o;
      o.op = here.op;
      std::string text(here.op->rule);
      if (text.empty()) text = "..., ..., ... -> ...";  // slopes of what is computed element by element
      if ((How == cuda::mapping::columns || here.gathers) && here.op == &cfp::info<copy_t>) text = "... width -> width";
      const bool has_row = text.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos;
      o.r = parse(text, has_row && text.find(" q ") != std::string::npos ? 0 : has_row ? 1 : 2);
      const int along =
          How == cuda::mapping::columns || !here.reduces ? o.r.results[0].factors.back() : detail::last_factor(o.r);
      call c;
      c.op = &o;
      c.factors = o.r.factors.size();
      for (int f = 0; f < c.factors; ++f) {
        c.size[f] = f == along ? length : rows;
        c.start[f] = f == along ? bound.first : bound.start[0];
        o.sizes.push(c.size[f] * 3);
      }
      c.find_steps();
      for (int i = 0; i < here.op->scalars; ++i) {
        o.scalars.push(scalars[static_cast<std::size_t>(i)]);
        bound.scalar[s][i] = static_cast<float>(scalars[static_cast<std::size_t>(i)]);
      }
      for (int i = 0; i < o.r.coordinates.size(); ++i) bound.coordinate[s][i] = o.r.coordinates[i] == along ? -1 : 0;
      const auto bind = [&](call_tensor& t, cuda::chain_tensor& chained, const pattern& p, numbers<T>& x, bool wide,
                            bool is_new, bool with_data) {
        long step = 1;
        for (int i = p.factors.size() - 1; i >= 0; --i) {
          t.stride[p.factors[i]] = step;
          step *= c.size[p.factors[i]];
        }
        if (is_new) x = numbers<T>(step, wide, even);
        t.data = x.held.at();
        t.wide = x.wide && sizeof(T) < 4;
        if (with_data && is_new) chained.data = place(on, x.held);
        chained.wide = t.wide;
        chained.along = t.stride[along];
        for (int f = 0; f < c.factors; ++f)
          if (f != along && t.stride[f] != 0) chained.stride[0] = t.stride[f];
        return is_new;
      };
      for (int k = 0; k < here.sources.size(); ++k) {
        const cuda::chain_source x = here.sources[k];
        const auto at = static_cast<std::size_t>(x.index);
        cuda::chain_tensor unused;
        if (x.step) bind(c.operand[k], unused, o.r.operands[k], expected[at], false, false, false);
        else if (bind(c.operand[k], bound.input[x.index], o.r.operands[k], input[at],
                      !here.along[k] || (may_be_wide(info, x.index) && random() % 4 == 0), input[at].count == 0, true))
          fill(input[at], kinds[at], 4, random);
      }
      cuda::chain_tensor& out = bound.result[s];
      bind(c.result[0], out, o.r.results[0], expected[static_cast<std::size_t>(s)],
           here.reduces || here.gathers || random() % 4 == 0, true, false);
      found[static_cast<std::size_t>(s)] =
          numbers<T>(expected[static_cast<std::size_t>(s)].count, expected[static_cast<std::size_t>(s)].wide, even);
      if (s + 1 == info.steps.size() || random() % 3 != 0)
        out.data = place(on, found[static_cast<std::size_t>(s)].held);
      host.find (*here.op)(c);
      any_reduced = any_reduced || here.reduces;
    }
    const auto& chain = chain_of<Chain, How>();
    const memory workspace(chain.workspace != nullptr ? chain.workspace(bound) : 0);
    void* const around = place(on, workspace);
    on.run([&] { chain.run(on.main(), bound, around); });
    INFO(rows << " rows of " << length << (even ? "" : ", not at multiples of 16 bytes") << ", seed " << seed);
    for (int s = 0; s < info.steps.size(); ++s) {
      if (bound.result[s].data == nullptr) continue;
      const auto at = static_cast<std::size_t>(s);
      const long i = differs(
          expected[at], found[at],
          tested::device::roundings + (any_reduced ? (How == cuda::mapping::columns ? rows : length) : 0) +
              (info.gathers() ? rows : 0),
          element_source(info.steps[s]) < 0 ? nullptr
                                            : &expected[static_cast<std::size_t>(element_source(info.steps[s]))]);
      if (i >= 0)
        FAIL_CHECK("step " << s << " (" << info.steps[s].op->label << ") element " << i << " is " << found[at][i]
                           << ", expected: " << expected[at][i]);
    }
  }
};

}  // namespace kernel_cases
