// Optimizers of less state: sizes, formulas, and that plans train by them as one rank does.
#include "../catch.hpp"
#include "../from_environment.hpp"

#include "small.hpp"

#include <cfp/backend/lean_state.hpp>
#include <cfp/model/read_mesh.hpp>

#include <numeric>

namespace optimizer_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

training by(optimizer_form form, double clip = 0, int micro_batches = 1) {
  training how;
  how.optimizer = form;
  how.clip = clip;
  how.micro_batches = micro_batches;
  return how;
}

graph small_model(const std::string& name, const training& how) {
  model_sizes sizes;
  sizes.batch = 4 / how.micro_batches;
  sizes.sequence = 8;
  return differentiate(refine(build_model(tiny(name), sizes).forward), how);
}

long state_bytes(const program& p, const graph& g) {
  long n = 0;
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].persistent && p.buffers[b].root == static_cast<int>(b) &&
        g[p.buffers[b].value].role == value_role::state)
      n += p.buffers[b].bytes;
  return n;
}

// What persists of a training on one rank in float64.
std::vector<double> after(const graph& g, const std::string& label, long steps) {
  const program p = single(g, sizeof(double));
  const int v = g.find(label);
  REQUIRE(v >= 0);
  std::vector<double> out;
  const auto ranks = ranks_for(p);
  ranks->run([&](rank& r) {
    const auto run = r.load(p, g, 3);
    for (long s = 1; s <= steps; ++s) run->step(s, 1);
    out = whole(r, *run, g, v);
  });
  return out;
}

// A gradient that is the same in every step: of the sum of products of a weight with given numbers.
struct known_gradient {
  std::vector<long> sizes;
  const char* given = "given";

  template <class Op>
  graph trained(const Op& product, const training& how) const {
    static constexpr const char* names[] = {"many", "rows", "columns"};
    model net;
    std::vector<dimension> dims;
    for (std::size_t d = 0; d < sizes.size(); ++d) dims.push_back({names[3 - sizes.size() + d], sizes[d]});
    const auto with = [&](const auto& make) {
      if (dims.size() == 1) return make({dims[0]});
      if (dims.size() == 2) return make({dims[0], dims[1]});
      return make({dims[0], dims[1], dims[2]});
    };
    using listed = std::initializer_list<dimension>;
    const tensor w = with([&](listed all) { return net.weight("w", all, {0.1, 0.02}); });
    const tensor x = with([&](listed all) { return net.weight("x", all, {0.3, 0.2}); });
    net.recorded.loss = product(w, x).id;
    return differentiate(refine(net.recorded), how);
  }
};

}  // namespace

TEST_CASE("state takes the bytes its form says") {
  for (const char* name : {"gpt", "llama", "mixtral", "t5"}) {
    INFO(name);
    std::map<optimizer_form, long> expected;
    const graph g = small_model(name, {});
    for (const value& v : g.values) {
      if (v.role != value_role::weight || v.producer >= 0) continue;
      const long n = elements(v.shape);
      std::vector<long> written;
      for (int d = 0; d < v.rank(); ++d) {
        if (d == 0 || v.group[d] != v.group[d - 1]) written.push_back(1);
        written.back() *= v.shape[d];
      }
      expected[optimizer_form::adamw_float32] += 2 * 4 * n;
      expected[optimizer_form::adamw_bfloat16] += 2 * 2 * n;
      expected[optimizer_form::adamw_8bit] += 2 * (n + 4 * ((n + 255) / 256));
      const std::size_t rank = written.size();
      expected[optimizer_form::adafactor] += 4 * (rank < 2 ? n : n / written[rank - 1] + n / written[rank - 2]);
    }
    for (const auto& [form, bytes] : expected) {
      const graph trained = small_model(name, by(form));
      CHECK(state_bytes(single(trained, 4), trained) == bytes);
      CHECK(state_bytes(single(trained, 2), trained) == bytes);
    }
    CHECK(expected[optimizer_form::adafactor] * 8 < expected[optimizer_form::adamw_float32]);
  }
}

TEST_CASE("Adafactor does what its paper says") {
  training how = by(optimizer_form::adafactor);
  how.rate = 0.01;
  const auto check = [&](const std::vector<long>& sizes, const auto& product) {
    const graph g = known_gradient{sizes}.trained(product, how);
    const graph none = known_gradient{sizes}.trained(product, by(optimizer_form::adamw_float32));
    std::vector<double> w = after(g, "w", 0), x = after(g, "x", 0);
    const long n = static_cast<long>(w.size()), columns = sizes.back(),
               rows = sizes.size() > 1 ? sizes[sizes.size() - 2] : 1, many = n / rows / columns;
    CHECK(after(none, "w.exp_avg", 1)[0] == Approx(0.1 * x[0]));  // x is its gradient
    std::vector<double> of_rows(static_cast<std::size_t>(many * rows)),
        of_columns(static_cast<std::size_t>(many * columns)), of_each(w.size());
    const double most = 0.1;  // decay
    for (long t = 1; t <= 3; ++t) {
      // Both weights move: the gradient of each is the other, as it was before the step.
      const std::vector<double> gradient = after(g, "x", t - 1);
      const double beta = 1 - std::pow(static_cast<double>(t), -0.8);
      std::vector<double> row(of_rows.size()), column(of_columns.size()), change(w.size());
      for (long m = 0; m < many; ++m)
        for (long i = 0; i < rows; ++i)
          for (long j = 0; j < columns; ++j) {
            const double square = std::pow(gradient[static_cast<std::size_t>((m * rows + i) * columns + j)], 2) + 1e-16;
            row[static_cast<std::size_t>(m * rows + i)] += square / static_cast<double>(columns);
            column[static_cast<std::size_t>(m * columns + j)] += square / static_cast<double>(rows);
            double& each = of_each[static_cast<std::size_t>((m * rows + i) * columns + j)];
            each = beta * each + (1 - beta) * square;
          }
      for (std::size_t i = 0; i < row.size(); ++i) of_rows[i] = beta * of_rows[i] + (1 - beta) * row[i];
      for (std::size_t j = 0; j < column.size(); ++j) of_columns[j] = beta * of_columns[j] + (1 - beta) * column[j];
      double squares = 0;
      for (long m = 0; m < many; ++m) {
        double mean = 0;
        for (long i = 0; i < rows; ++i)
          mean += of_rows[static_cast<std::size_t>(m * rows + i)] / static_cast<double>(rows);
        for (long i = 0; i < rows; ++i)
          for (long j = 0; j < columns; ++j) {
            const auto at = static_cast<std::size_t>((m * rows + i) * columns + j);
            const double v = sizes.size() == 1 ? of_each[at]
                                               : of_rows[static_cast<std::size_t>(m * rows + i)] *
                                                     of_columns[static_cast<std::size_t>(m * columns + j)] / mean;
            change[at] = gradient[at] / std::sqrt(v);
            squares += change[at] * change[at];
          }
      }
      const double size = std::max(1.0, std::sqrt(squares / static_cast<double>(n)));
      for (std::size_t i = 0; i < w.size(); ++i)
        w[i] -= how.rate * (change[i] / size + (sizes.size() > 1 ? most : 0.0) * w[i]);
      const std::vector<double> found = after(g, "w", t);
      for (std::size_t i = 0; i < w.size(); ++i) CHECK(found[i] == Approx(w[i]).epsilon(1e-12));
    }
  };
  check({7}, op<"columns, columns -> ">{});
  check({5, 3}, op<"rows columns, rows columns -> ">{});
  check({2, 3, 4}, op<"many rows columns, many rows columns -> ">{});
}

// Biases of keys have no gradient but rounding, which Adafactor makes whole steps of.
undecided key_biases(const trained& t, const graph& g) {
  undecided out;
  for (std::size_t w = 0; w < t.weights.size(); ++w) {
    const std::size_t n = t.change[w].size();
    std::vector<bool>& mine = out.elements.emplace_back(n);
    if (g[t.weights[w]].label.view().ends_with("c_attn.bias"))
      for (std::size_t i = n / 3; i < 2 * n / 3; ++i) mine[i] = true;
  }
  return out;
}

TEST_CASE("Adafactor trains on every mesh as on one rank, and sends what was inferred", "[heavy]") {
  std::mt19937 random(11);
  for (const char* name : {"gpt", "mixtral"})
    for (const auto& [mesh, cases] : {std::pair{mesh_of({2}), 6}, {mesh_of({4}), 3}, {mesh_of({2, 2}), 6}}) {
      const graph g = small_model(name, by(optimizer_form::adafactor, cases == 3 ? 0.5 : 0, cases == 3 ? 1 : 2));
      const byte_text text = text_for(g);
      const trained expected = train_on(single(g, sizeof(double)), g, text, 4, 3);
      CHECK(all_changed(expected));
      const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
      for (int n = 0; n < cases; ++n) {
        const plan p = random_plan(g, mesh, d, random, sizeof(double));
        const auto apart = compare(expected, train_on(p.code, g, text, 4, 3), g, key_biases(expected, g));
        INFO(name << " case " << n << ", worst tensor " << apart.worst);
        CHECK(apart.loss <= 1e-10);
        CHECK(apart.parameters <= 1e-7);
      }
    }
}

TEST_CASE("what is rounded at random keeps its mean, and what was read is written as it was") {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> any(-1, 1);
  for (const element form : {element::bfloat16, element::blocks8}) {
    std::vector<float> x(1000);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = any(random) * std::exp2(-static_cast<float>(i % 24));
    x[100] = 0;
    std::vector<char> held(static_cast<std::size_t>(bytes_of(form, 1000, 4)) + 8), again(held.size());
    write_lean(form, held.data(), x);
    std::vector<float> read = read_lean(form, held.data(), 1000);
    CHECK(read[100] == 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK((read[i] > 0) == (x[i] > 0));
      if (std::abs(x[i]) > 0.01f) CHECK(read[i] == Approx(x[i]).epsilon(form == element::bfloat16 ? 1.0 / 256 : 0.06));
    }
    write_lean(form, again.data(), read);
    CHECK(again == held);
    std::vector<double> sum(x.size());
    for (std::uint64_t step = 1; step <= 4000; ++step) {
      for (long from = 0; from < 1000; from += block8_numbers)
        write_lean_block(form, held.data(), 1000, from, x.data() + from,
                         [&](long i) { return rounding_bits(3, step, static_cast<std::uint64_t>(i)) & 0xffff; });
      read = read_lean(form, held.data(), 1000);
      for (std::size_t i = 0; i < x.size(); ++i) sum[i] += static_cast<double>(read[i]);
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      if (std::abs(x[i]) > 1e-3f) CHECK(sum[i] / 4000 == Approx(x[i]).epsilon(0.004));
  }
  // a weight that moves by less than half of what can be told apart
  float lost = 1, kept = 1;
  for (std::uint64_t step = 1; step <= 1000; ++step) {
    lost = static_cast<float>(bf16(lost * 0.999f));
    kept = static_cast<float>(rounded_bf16(kept * 0.999f, rounding_bits(1, step, 0) & 0xffff));
  }
  CHECK(lost > 0.9f);
  CHECK(kept == Approx(std::exp(-1.0)).epsilon(0.2));
}

TEST_CASE("moments in fewer bytes train nearly as those of 32 bits do") {
  for (const char* name : {"gpt", "mixtral"}) {
    const auto losses = [&](optimizer_form form, const mesh_shape& mesh, long bytes) {
      training how = by(form, 1);
      how.rate = 1e-3;
      const graph g = small_model(name, how);
      std::mt19937 random(3);
      const plan p =
          random_plan(g, mesh, decisions(g, parallel_blocks(g), mesh, axis_choice::regathered), random, bytes);
      const trained out = train_on(p.code, g, text_for(g), 30, 3);
      CHECK(all_changed(out));
      return out.loss;
    };
    const auto mean = [](const std::vector<double>& x) {
      return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    };
    for (const long bytes : {8l, 4l, 2l}) {
      if (sanitized && (bytes > 2 || name != std::string("gpt"))) continue;
      const std::vector<double> right = losses(optimizer_form::adamw_float32, mesh_of({1}), bytes);
      CHECK(right.back() < 0.9 * right.front());
      for (const optimizer_form form : {optimizer_form::adamw_bfloat16, optimizer_form::adamw_8bit})
        for (const mesh_shape& mesh : {mesh_of({1}), mesh_of({2})}) {
          const std::vector<double> lean = losses(form, mesh, bytes);
          INFO(name << ", " << bytes << " bytes, " << name_of(form) << " on " << to_string(mesh));
          CHECK(lean != right);
          CHECK(mean(lean) == Approx(mean(right)).epsilon(0.02));
        }
    }
  }
}

}  // namespace optimizer_tests
