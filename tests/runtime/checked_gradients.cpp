// Users check gradients: those of a model and of an operator by itself hold, and a gradient that is written wrong is
// found and named.
#include "../catch.hpp"

#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/backend/threads.hpp>
#include <cfp/op/all.hpp>
#include <cfp/session/check_gradients.hpp>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace checked_gradients_tests {

using namespace cfp;

namespace {

// x y^2, its gradient written by hand in a way that `How` says.
enum class how { right, twice, other_sign, without_y };

template <int Operand, how How>
struct part_t : op<"..., ..., ... -> ...", part_t<Operand, How>> {
  static constexpr bool derived = true;
  static constexpr std::string_view label() { return "squared_gate_part"; }
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T x, T y) {
    constexpr double by = How == how::twice ? 2.0 : How == how::other_sign && Operand == 1 ? -1.0 : 1.0;
    return T(by) * dz * (Operand == 0 ? y * y : T(2) * x * y);
  }
};
template <how How>
struct squared_gate_t : op<"..., ... -> ...", squared_gate_t<How>> {
  static constexpr std::string_view label() { return "squared_gate"; }
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return x * y * y;
  }
  static constexpr gradient_step along(int operand, const op_info& op) {
    return {&op,
            "..., ..., ... -> ...",
            {{{gradient_source::gradient, 0}, {gradient_source::operand, 0}, {gradient_source::operand, 1}}, 3},
            {{static_cast<signed char>(operand)}, 1}};
  }
  static constexpr std::array<gradient_step, How == how::without_y ? 1 : 2> gradient = [] {
    std::array<gradient_step, How == how::without_y ? 1 : 2> steps{};
    steps[0] = along(0, info<part_t<0, How>>);
    if constexpr (How != how::without_y) steps[1] = along(1, info<part_t<1, How>>);
    return steps;
  }();
};

template <how How>
gradient_check checked(const std::string& mesh = {}) {
  gradient_options o;
  o.mesh = mesh;
  o.kernels = kernels_of<squared_gate_t<How>, part_t<0, How>, part_t<1, How>>();
  return check_gradients(squared_gate_t<How>{}, o);
}

template <class T>
std::string printed(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

// Rows of numbers, told apart.
model rows(long batch, const filling& signal, long width = 12) {
  model net;
  const dimension all{"batch", batch}, in{"in", 6}, inner{"inner", width}, kinds{"kinds", 8};
  const tensor x =
      add(net.input("signal", {all, in}, element::real, signal),
          lookup(net.weight("table", {kinds, in}, {0, 0.5}), net.input("kind", {all}, element::index, {0, 0, 8})));
  const tensor up =
      relu(bias(linear(x, net.weight("up", {in, inner}, {0, 0.5})), net.weight("shift", {inner}, {0.1, 0.2})));
  const tensor logits = linear(up, net.weight("down", {inner, kinds}, {0, 0.5}));
  const tensor most = logits_max(logits);
  net.recorded.loss = cross_entropy(logits, net.input("next", {all}, element::index, {0, 0, 8}), most,
                                    logits_sum(logits, most), 1.0 / static_cast<double>(batch))
                          .id;
  return net;
}

}  // namespace

TEST_CASE("gradients written by hand: a right one holds, a wrong one is named") {
  const gradient_check right = checked<how::right>();
  INFO(printed(right));
  CHECK(right.holds());
  CHECK(right.faults().empty());
  CHECK(right.tried() == 8);  // two operands of four elements
  for (const gradient_check::of_tensor& t : right.tensors) CHECK(t.largest > 0);

  for (const std::string mesh : {"", "data=2"}) {
    const gradient_check twice = checked<how::twice>(mesh);
    CHECK(!twice.holds());
    REQUIRE(twice.worst() != nullptr);
    CHECK(twice.worst()->worst.derived / twice.worst()->worst.by_differences == Approx(2).epsilon(1e-6));
    CHECK(twice.faults().size() == 2);

    const gradient_check sign = checked<how::other_sign>(mesh);
    CHECK(!sign.holds());
    CHECK(sign.worst()->tensor == "operand 1");
    CHECK(sign.worst()->worst.derived / sign.worst()->worst.by_differences == Approx(-1).epsilon(1e-6));
    CHECK(sign.worst()->relative() == Approx(2).epsilon(0.01));
    CHECK(sign.faults().size() == 1);
    CHECK(sign.tensors[0].worst.holds());

    const gradient_check without = checked<how::without_y>(mesh);
    CHECK(!without.holds());
    CHECK(without.worst()->tensor == "operand 1");
    CHECK(without.worst()->worst.derived == 0);
    CHECK(without.worst()->relative() == Approx(1));
  }
}

TEST_CASE("a check of gradients is printed, and gives itself as JSON") {
  const gradient_check wrong = checked<how::twice>();
  const gradient_check::of_tensor& worst = *wrong.worst();
  REQUIRE(worst.worst.place.size() == 1);
  CHECK(worst.worst.place[0].first == "any0");
  const std::string place = "[any0=" + std::to_string(worst.worst.place[0].second) + "]";
  CHECK_THAT(printed(wrong), Catch::Contains("gradients do NOT hold: 8 of 8 elements of 2 tensors (seed 1"));
  CHECK_THAT(printed(wrong), Catch::Contains("the gradient is not the loss's: " + worst.tensor + place + ": derived "));
  CHECK_THAT(printed(checked<how::right>()), Catch::Contains("gradients hold: ") && Catch::Contains("worst operand "));
  const auto j = nlohmann::json::parse(wrong.json());
  CHECK(j["holds"] == false);
  CHECK(j["seed"] == 1);
  REQUIRE(j["tensors"].size() == 2);
  CHECK(j["tensors"][0]["worst"]["derived"].get<double>() == wrong.tensors[0].worst.derived);
  CHECK(j["tensors"][0]["worst"]["place"]["any0"] == wrong.tensors[0].worst.place[0].second);
  CHECK(nlohmann::json::parse(checked<how::right>().json())["holds"] == true);
}

TEST_CASE("gradients of a model hold on any mesh, along its inputs too") {
  for (const std::string mesh : {"", "data=2", "data=2,model=2"}) {
    gradient_options o;
    o.mesh = mesh;
    o.elements = 10;
    const gradient_check c = check_gradients(rows(4, {0, 1}), o);
    INFO(printed(c));
    CHECK(c.holds());
    CHECK(c.plans.size() == (mesh.empty() ? 1 : 4));
    CHECK(c.tensors.size() == 5);
    CHECK(std::any_of(c.tensors.begin(), c.tensors.end(),
                      [](const gradient_check::of_tensor& t) { return t.tensor == "signal"; }));
    for (const gradient_check::of_tensor& t : c.tensors) {
      CHECK(t.tried >= 8);
      CHECK(t.tried <= std::min(t.elements, 13l));
      CHECK(t.largest > 0);
    }
    o.of_inputs = false;
    CHECK(check_gradients(rows(4, {0, 1}), o).tensors.size() == 4);
  }
}

TEST_CASE("gradients are checked on a batch of data, which must fit") {
  gradient_options o;
  const auto give = [](std::size_t signal) {
    return [signal](long) {
      std::vector<float> x(signal);
      for (std::size_t i = 0; i < signal; ++i) x[i] = static_cast<float>(i % 7) - 3;
      return batch{{"signal", x},
                   {"kind", std::vector<std::int32_t>{1, 5, 1, 7}},
                   {"next", std::vector<std::int32_t>{2, 2, 0, 3}}};
    };
  };
  o.data = give(24);
  o.elements = 100;
  const gradient_check c = check_gradients(rows(4, {}), o);
  INFO(printed(c));
  CHECK(c.holds());
  const gradient_check other = check_gradients(rows(4, {0, 1}));
  CHECK(other.loss != c.loss);
  o.data = give(23);
  CHECK_THROWS_WITH(check_gradients(rows(4, {}), o), "batch 0: input 'signal' has 23 elements, the model takes 24");
}

TEST_CASE("where a loss has a kink the slope of one side is none's fault, and is counted") {
  gradient_options o;
  o.data = [](long) {
    return batch{{"signal", std::vector<float>(24, 0.f)}};  // relu of zero: along all of them
  };
  model net;
  const dimension all{"batch", 4}, in{"in", 6};
  const tensor x = relu(net.input("signal", {all, in}, element::real, {}));
  net.recorded.loss = op<"batch in, batch in -> ">{}(x, net.weight("w", {all, in}, {1})).id;
  const gradient_check c = check_gradients(net, o);
  CHECK(c.left_out() == 24);
  CHECK(!c.holds());
  CHECK_THAT(printed(c), Catch::Contains("at 50.0% of what was tried the loss has a kink, at most 10%"));
}

TEST_CASE("operators of every kind are checked by themselves") {
  for (const graph& g :
       {operator_model(linear), operator_model(gelu), operator_model(bias, {.dots = 2}), operator_model(lookup),
        operator_model(scores), operator_model(split_heads), operator_model(split_qkv, {.sizes = {{"three", 3}}}),
        operator_model(gated_silu, {.sizes = {{"any0", 10}}}), operator_model(scaled, {.scalars = {-1.5}}),
        operator_model(op<"a k b, c k -> c b a">{}),
        operator_model(rotary, {.sizes = {{"half", 2}, {"out", 2}}, .scalars = {3, 0.25}}),
        // heads of one number
        operator_model(split_qkv, {.sizes = {{"three", 3}, {"d", 1}}}),
        operator_model(rotary, {.sizes = {{"half", 2}, {"out", 2}, {"pair", 1}}, .scalars = {3, 1}})}) {
    gradient_options o;
    o.mesh = "x=2";
    INFO(g.operations[0].op->label);
    const gradient_check c = check_gradients(g, o);
    INFO(printed(c));
    CHECK(c.holds());
  }
  CHECK_THROWS_WITH(operator_model(linear, {.sizes = {{"inn", 3}}}),
                    "operator 'linear': its rule \"... in, in out -> ... out\" has no factor 'inn'");
}

namespace {

// Said to be linear, and is not: parts of sums may not pass.
struct not_linear_t : op<"... -> ...", not_linear_t> {
  static constexpr linearity linear = linearity::all;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x * x;
  }
};
struct shifted_t : op<"... -> ...", shifted_t> {
  static constexpr linearity linear = linearity::all;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x + T(1);
  }
};
struct product_t : op<"..., ... -> ...", product_t> {
  static constexpr linearity linear = linearity::all;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return x * y;
  }
};
struct mixed_t : op<"..., ... -> ...", mixed_t> {
  static constexpr linearity linear = linearity::all;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return T(0.25) * x - y;
  }
};

// Behind a product in a model, whose sums a plan may leave in parts.
template <class Op>
model with_two_readers(const Op& mine) {
  model net;
  const dimension all{"batch", 4}, in{"in", 6};
  const tensor x = net.input("x", {all, in}, element::real, {0, 1});
  const tensor y = mine(linear(x, net.weight("first", {in, {"hidden", 4}}, {0, 0.5})));
  static constexpr op<"batch hidden, batch hidden -> "> sum_of_products;
  net.recorded.loss = add(sum_of_products(y, y), sum_of_products(y, gelu(y))).id;
  return net;
}

}  // namespace

TEST_CASE("an operator that is said to be linear and is not is found, whatever plans are drawn") {
  const auto check = [](const auto& mine, const std::string& mesh, std::uint64_t seed, bool holds) {
    gradient_options o;
    o.mesh = mesh;
    o.seed = seed;
    o.kernels = kernels_of<std::decay_t<decltype(mine)>>();
    const gradient_check alone = check_gradients(mine, o);
    INFO(info<std::decay_t<decltype(mine)>>.label << " on " << mesh << " with seed " << seed << ":\n"
                                                  << printed(alone));
    CHECK(alone.holds() == holds);
    if (!holds) CHECK_THAT(printed(alone), Catch::Contains("sums in parts on " + mesh));
    if constexpr (parse(std::decay_t<decltype(mine)>::rule_source).operands.size() == 1) {
      const gradient_check inside = check_gradients(with_two_readers(mine), o);
      INFO(printed(inside));
      CHECK(inside.holds() == holds);
    }
  };
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    for (const std::string mesh : {"data=2", "data=2,model=2"}) {
      check(not_linear_t{}, mesh, seed, false);
      check(shifted_t{}, mesh, seed, false);
      check(product_t{}, mesh, seed, false);
      check(mixed_t{}, mesh, seed, true);
    }
}

TEST_CASE("a check of gradients that cannot be is refused") {
  gradient_options o;
  o.mesh = "x=7";
  CHECK_THROWS_WITH(check_gradients(rows(4, {0, 1}), o), Catch::Contains("mesh x=7 divides nothing of the model"));
  o.mesh = "x";
  CHECK_THROWS_WITH(check_gradients(rows(4, {0, 1}), o), Catch::Contains("write axes as name=size"));
  o.mesh = "";
  o.elements = 0;
  CHECK_THROWS_WITH(check_gradients(rows(4, {0, 1}), o), "of a tensor at least 1 element is tried, not 0");
  CHECK_THROWS_WITH(check_gradients(squared_gate_t<how::right>{}), Catch::Contains(".kernels = cfp::kernels_of<"));
  model without;
  CHECK_THROWS_WITH(check_gradients(without), Catch::Contains("the model has no loss"));
}

}  // namespace checked_gradients_tests
