// Nothing wrong is silent: what a user may get wrong in a model, its inputs and its plans, row by row, and the sentence
// each is answered with. Targets that are ignored have no part in loss and gradient.
#include "../catch.hpp"
#include "../own_operators.hpp"

#include "common.hpp"

#include <cfp/block/fingerprint.hpp>
#include <cfp/core/device_error.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/model/loss.hpp>
#include <cfp/model/random_words.hpp>
#include <cfp/model/structural_path.hpp>
#include <cfp/profile/instruction_kind.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/session/check_gradients.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <type_traits>

namespace trust_tests {

using namespace cfp;
using namespace own_operators;
using namespace small_tests;

namespace {

constexpr long rows = 8, width = 4, kinds = 8;

/// Rows of numbers, of which each is of a kind, or of one that does not count.
model classifier_model(bool ignoring = true) {
  model net;
  const dimension batch{"batch", rows}, wide{"width", width}, all{"kinds", kinds};
  const tensor x = net.input("x", {batch, wide}, element::real, {});
  const tensor targets = net.input("targets", {batch}, element::index, targets_below(kinds, ignoring));
  net.recorded.loss = mean_cross_entropy(linear(x, net.weight("w", {wide, all}, {0, 0.5})), targets).id;
  return net;
}
graph classifier(int passes, bool ignoring = true) {
  training how;
  how.beta1 = 0.5;  // the first moment is half the gradient
  how.micro_batches = passes;
  return differentiate(refine(classifier_model(ignoring).recorded), how);
}

/// In every pass `counted` of the rows count.
batch rows_of(long number, long counted) {
  std::vector<float> x;
  std::vector<std::int32_t> targets;
  for (long i = 0; i < rows; ++i) {
    const auto of = [&](std::uint64_t k) {
      return random_words(5, k, static_cast<std::uint64_t>(number * rows + i)).v[0];
    };
    for (std::uint64_t k = 0; k < width; ++k) x.push_back(static_cast<float>(of(k) % 256) / 128 - 1);
    // Not one after another, so that ranks have different numbers of them.
    targets.push_back(i * 3 % rows < counted ? static_cast<std::int32_t>(of(width) % kinds) : ignored_target);
  }
  return {{"x", x}, {"targets", targets}};
}

struct answer {
  double loss = 0;
  std::vector<double> gradient = std::vector<double>(width * kinds);
};

/// What frameworks compute: in each pass the mean over the rows that count; the passes' mean.
answer reference(const std::vector<double>& w, const std::vector<batch>& passes) {
  answer out;
  for (const batch& b : passes) {
    const auto& x = std::get<std::vector<float>>(b.at("x"));
    const auto& targets = std::get<std::vector<std::int32_t>>(b.at("targets"));
    double count = 0;
    for (const std::int32_t t : targets) count += t >= 0;
    for (long i = 0; i < rows && count > 0; ++i) {
      const std::int32_t target = targets[static_cast<std::size_t>(i)];
      if (target < 0) continue;
      const double share = 1 / (count * static_cast<double>(passes.size()));
      double logits[kinds]{}, sum = 0;
      for (long k = 0; k < kinds; ++k) {
        for (long d = 0; d < width; ++d)
          logits[k] += static_cast<double>(x[static_cast<std::size_t>(i * width + d)]) *
                       w[static_cast<std::size_t>(d * kinds + k)];
        sum += std::exp(logits[k]);
      }
      out.loss += share * (std::log(sum) - logits[target]);
      for (long d = 0; d < width; ++d)
        for (long k = 0; k < kinds; ++k)
          out.gradient[static_cast<std::size_t>(d * kinds + k)] +=
              share * static_cast<double>(x[static_cast<std::size_t>(i * width + d)]) *
              (std::exp(logits[k]) / sum - (k == target));
    }
  }
  return out;
}

void check_step(const program& p, const graph& g, const std::vector<batch>& data, double most) {
  std::vector<double> before, moment;
  double loss = 0;
  shared_batches batches(g, [&](long number) { return data[static_cast<std::size_t>(number) % data.size()]; });
  const int w = g.find("w"), m = g.find("w.exp_avg");
  ranks_for(p)->run([&](rank& r) {
    const auto run = r.load(p, g, 3);
    std::vector<double> first = whole(r, *run, g, w);
    one_step(*run, p, batches, 1);
    std::vector<double> then = whole(r, *run, g, m);
    if (r.leads()) before = first, moment = then, loss = run->loss();
  });
  batches.rethrow();
  const answer right = reference(before, data);
  CHECK(std::abs(loss - right.loss) <= most);
  REQUIRE(moment.size() == right.gradient.size());
  for (std::size_t i = 0; i < moment.size(); ++i) {
    INFO("gradient " << i << " is " << 2 * moment[i] << ", expected: " << right.gradient[i]);
    CHECK(std::abs(2 * moment[i] - right.gradient[i]) <= most);
  }
}

}  // namespace

TEST_CASE("ignored targets have no part in loss and gradient, on one rank and on every mesh") {
  for (const int passes : {1, 2}) {
    const graph g = classifier(passes);
    for (const std::vector<long>& counted : {std::vector<long>{5, 2}, {8, 1}, {0, 3}, {0, 0}}) {
      std::vector<batch> data;
      for (int n = 0; n < passes; ++n) data.push_back(rows_of(n, counted[static_cast<std::size_t>(n)]));
      INFO(passes << " passes, of " << rows << " targets " << counted[0] << " and " << counted[1] << " count");
      check_step(single(g, sizeof(double)), g, data, 1e-7);  // inputs are given as float
      check_step(single(g, sizeof(float)), g, data, 1e-6);
      check_step(single(g, 2), g, data, 2e-2);
      std::mt19937 random(7);
      for (const auto& sizes : {std::initializer_list<int>{2}, {4}, {2, 2}}) {
        const mesh_shape mesh = mesh_of(sizes);
        const decision_graph d = decisions(g, parallel_blocks(g), mesh);
        for (int n = 0; n < 6; ++n) {
          const plan p = random_plan(g, mesh, d, random, sizeof(double));
          INFO("plan " << n << " of a mesh of " << mesh.devices() << " ranks");
          check_step(p.code, g, data, 1e-7);
        }
      }
    }
  }
}

TEST_CASE("gradients of a loss in which nothing counts are not judged") {
  gradient_options o;
  o.data = [](long) { return rows_of(0, 0); };
  const gradient_check c = check_gradients(classifier_model(), o);
  CHECK_FALSE(c.holds());
  CHECK(c.faults() == std::vector<std::string>{"it cannot be judged: the loss depends on nothing that was tried"});
  o.data = [](long) { return rows_of(0, 5); };
  CHECK(check_gradients(classifier_model(), o).holds());
}

TEST_CASE("without ignored targets the mean over those that count is the mean over all") {
  const std::vector<batch> data{rows_of(0, rows)};
  const graph counting = classifier(1), plain = classifier(1, false);
  CHECK(plain.find("counted_targets") < 0);
  CHECK(counting.find("counted_targets") >= 0);
  check_step(single(plain, sizeof(double)), plain, data, 1e-7);
  check_step(single(counting, sizeof(double)), counting, data, 1e-7);
}

namespace {

// An operator of a user's own without a gradient.
inline constexpr struct peak_t : op<"... k -> ...; max k", peak_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
} peak;

struct a_tag_whose_name_alone_has_nearly_as_many_characters_as_fit_into_the_name_of_a_tensor_of_any_model {};

model small(std::string_view hidden = "hidden", long size = 8) {
  model net;
  const dimension batch{"batch", 4}, wide{"width", 8}, inner{hidden, size};
  const tensor x = net.input("x", {batch, wide}, element::real, {0, 1});
  const tensor up = linear(x, net.weight("up", {wide, inner}, {0, 0.3}));
  const tensor y = linear(up, net.weight("down", {inner, wide}, {0, 0.3}));
  net.recorded.loss = scaled(op<"batch width, batch width -> ">{}(y, y), 0.1).id;
  return net;
}

session_options two_ranks() {
  session_options o;
  o.mesh = "data=2";
  return o;
}

/// The sentence of what is thrown: of this kind, below the root of all kinds.
template <class Kind, class F>
std::string refused(const F& f) {
  static_assert(std::is_base_of_v<error, Kind> && std::is_base_of_v<std::exception, error>);
  try {
    f();
  } catch (const error& e) {
    return dynamic_cast<const Kind*>(&e) != nullptr ? e.what() : std::string("something else: ") + e.what();
  } catch (const std::exception& e) {
    return std::string("not below cfp::error: ") + e.what();
  } catch (...) {
    return "not below std::exception";
  }
  return "nothing is refused";
}

std::string here(int line) { return "trust.cpp:" + std::to_string(line) + ": "; }
bool says(const std::string& text, const std::string& words) {
  INFO(text);
  CHECK(text.find(words) != std::string::npos);
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a mistake in a model is said with the place of the call") {
  model net;
  const dimension a{"a", 2}, b{"b", 3};
  const tensor x = net.input("x", {a, b}, element::real, {}), i = net.input("i", {a}, element::index, {0, 0, 3});
  const tensor w = net.weight("w", {b, {"c", 4}}, {});
  const auto wrong = [&](const auto& call) { return refused<shape_error>(call); };
  says(wrong([&] { add(x, i); }), here(__LINE__) + "add: operand 1 'i' (a) has 1 dimension");
  says(wrong([&] { linear(w, x); }), here(__LINE__) + "linear: operand 1 'x' (a b) has 'a' of size 2 where operand 0");
  says(wrong([&] { net.weight("v", {{"a", 0}}, {}); }), here(__LINE__) + "v: dimension 'a' has size 0, at least 1");
  says(wrong([&] { net.input("y", {{"a", -1}}, element::real, {}); }), here(__LINE__) + "y: dimension 'a' has size -1");
  says(wrong([&] { net.activation("y", {{"a", 0}}); }), here(__LINE__) + "y: dimension 'a' has size 0");
  says(wrong([&] { net.renamed(x, "c", "a"); }), here(__LINE__) + "x: no dimension is called 'c', they are (a b)");
  says(wrong([&] { net.renamed(x, "a", "b"); }), here(__LINE__) + "x: 'a' cannot be called 'b', as another dimension");
  says(wrong([&] { relu(tensor{}); }), here(__LINE__) + "relu: operand 0 is a tensor of no model");
  says(wrong([&] { add(x, tensor{}); }), here(__LINE__) + "add: operand 1 is no tensor of this model");
  model other;
  const tensor y = other.input("y", {a, b}, element::real, {});
  says(wrong([&] { add(x, y); }), here(__LINE__) + "add: operand 1 is no tensor of this model");
  says(wrong([&] { op<"a, a -> a">{}(i, i); }),
       here(__LINE__ - 1) + "einsum: operand 0 'i' holds indices, the operator takes numbers there");
  const tensor row = op<"a b -> a">{}(x);
  says(wrong([&] { lookup(w, row); }), "holds numbers, the operator takes indices there (element::index)");
}

TEST_CASE("a name that is too long is said with the place where it is given") {
  model net;
  const dimension a{"a", 2}, b{"b", 3};
  const char* const longer = "abcdefghijklmnopqrstuvwx";
  const std::string of_24 = "'abcdefghijklmnopqrstuvwx': has 24 characters, at most 23 fit";
  const auto wrong = [&](const auto& call) { return refused<limit_reached>(call); };
  CHECK(dimension("abcdefghijklmnopqrstuvw", 2).label == "abcdefghijklmnopqrstuvw");
  says(wrong([&] { net.weight("w", {{longer, 4}, b}, {}); }), here(__LINE__) + of_24);
  says(wrong([&] { net.input("x", {a, {longer, 4}}, element::real, {}); }), here(__LINE__) + of_24);
  const tensor x = net.weight("x", {a, b}, {});
  says(wrong([&] { net.renamed(x, "a", longer); }), here(__LINE__) + of_24);
  says(wrong([&] { op<"(p q) b -> p q b">{}(x, size_of{longer, 2}); }), here(__LINE__) + of_24);

  const std::string most(119, 'n'), more(120, 'n'), of_120 = "'" + more + "': has 120 characters, at most 119 fit";
  CHECK(net.called(most, x).id == x.id);
  says(wrong([&] { net.called(more, x); }), here(__LINE__) + of_120);
  says(wrong([&] { net.weight(more, {a}, {}); }), here(__LINE__) + of_120);
  says(wrong([&] { net.input(more, {a}, element::real, {}); }), here(__LINE__) + of_120);
  says(wrong([&] { net.scope(more); }), here(__LINE__) + of_120);
  const tensor y = net.input("y", {a, b}, element::real, {});
  const std::string scope(115, 's');
  net.scope(scope);
  says(wrong([&] { relu(y); }), here(__LINE__) + "'" + scope + ".relu': has 120 characters, at most 119 fit");
  model other;  // what is added to a model to train it says where what it belongs to was made
  const std::string weight(115, 'w');
  const tensor w = other.weight(weight, {a, b}, {});
  const int line = __LINE__ + 1;
  const tensor sum = add(w, w);
  other.recorded.loss = op<"a b, a b -> ">{}(sum, sum).id;
  says(wrong([&] { differentiate(refine(other.recorded)); }),
       here(line) + "'" + weight + ".add.grad': has 124 characters, at most 119 fit");
}

TEST_CASE("what no refinement and no gradient can do is said with the place of the call") {
  const auto wrong = [](const model& net) {
    return refused<shape_error>([&] { differentiate(refine(net.recorded)); });
  };
  model net;
  const tensor x = net.weight("x", {{"b", 3}, {"a", 12}}, {});
  const tensor y = relu(op<"b (p q) -> b p q">{}(x, size_of{"q", 4}));
  const tensor z = relu(op<"b (p q) -> b p q">{}(x, size_of{"q", 6}));
  says(wrong(net), here(__LINE__ - 1) + "x: rules cut a dimension in ways that do not align ('a': 4 and 6)");
  CHECK(y.id != z.id);

  model cut;
  const tensor table = cut.weight("table", {{"rows", 12}, {"width", 4}}, {});
  op<"(p q) width -> p q width">{}(table, size_of{"q", 4});
  lookup(table, cut.input("row", {{"batch", 4}}, element::index, {0, 0, 12}));
  says(wrong(cut), here(__LINE__ - 1) + "table.lookup: an indexed factor cannot be cut into this many parts (");

  model most;
  most.recorded.loss = peak(most.weight("w", {{"k", 4}}, {})).id;
  says(wrong(most), here(__LINE__ - 1) + "w.peak: a maximum or minimum has no gradient of its own");
}

TEST_CASE("operators of one template have its name, and are told apart by its arguments") {
  using namespace cfp::detail;
  static_assert(label_of_type("users::swiglu_t") == "swiglu" && label_of_type("gelu") == "gelu");
  static_assert(label_of_type("n::{anonymous}::part_t<0, n::how::right>") == "part");
  static_assert(label_of_type("n::(anonymous namespace)::part_t<0, n::how::right>") == "part");
  static_assert(label_of_type("n::outer<int>::inner_t") == "inner" && label_of_type("f()::here_t") == "here");
  static_assert(label_of_type("n::said_t<cfp::lit<9>{\"a -> b::c\"}>") == "said");
  static_assert(without_namespaces("n::{anonymous}::part_t<0, n::how::right>") == "part_t<0, n::how::right>");
  static_assert(without_namespaces("n::outer<int>::inner_t") == "outer<int>::inner_t");
  using tag = a_tag_whose_name_alone_has_nearly_as_many_characters_as_fit_into_the_name_of_a_tensor_of_any_model;
  static_assert(info<scaled_by_t<2, tag>>.label == "scaled_by" && info<scaled_by_t<3>>.label == "scaled_by");
  static_assert(info<scaled_by_t<3>>.type == "scaled_by_t<3>" && info<bent_t>.type == "bent_t");
  static_assert(info<slope<bent_t, 0>>.type == "bent_t" && template_arguments(info<bent_t>).empty());

  const auto with = [](const auto& scaled) {
    model net;
    const tensor y = scaled(net.weight("w", {{"batch", 4}, {"width", 8}}, {0, 1}));
    net.recorded.loss = op<"batch width, batch width -> ">{}(y, y).id;
    return differentiate(refine(net.recorded));
  };
  const graph twice = with(scaled_by_t<2, tag>{}), thrice = with(scaled_by_t<3>{}), again = with(scaled_by_t<3>{});
  CHECK(twice.find("w.scaled_by") >= 0);
  CHECK(twice.find("w.scaled_by.grad") >= 0);
  const auto seen = [](const graph& g) {
    const program p = single(g, sizeof(float));
    std::string labels;
    for (const instruction& i : p.code) labels += i.nothing ? "" : kind_of(i, p, g).label() + "\n";
    return std::pair(fingerprint(g, all_operations(g)), labels);
  };
  CHECK(seen(again) == seen(thrice));
  CHECK(seen(twice).first != seen(thrice).first);
  CHECK(seen(twice).second != seen(thrice).second);
  CHECK(structural_paths(again).all() == structural_paths(thrice).all());
  CHECK(structural_paths(twice).all() != structural_paths(thrice).all());
}

TEST_CASE("everything that is thrown is below cfp::error, by kind") {
  const std::string machines = std::string(CFP_SOURCE_DIR) + "/examples/machines/";
  // A model that does not fit, a rule that cannot be read, an operator without a gradient.
  says(refused<shape_error>([] { parse("b s -> b t"); }), "a result has a factor that no operand has, column 8");
  says(refused<shape_error>([] {
         model net;
         net.recorded.loss = peak(net.weight("w", {{"k", 4}}, {})).id;
         differentiate(refine(net.recorded));
       }),
       "has no gradient of its own");
  // What is longer than its place.
  says(refused<limit_reached>([] { small("abcdefghijklmnopqrstuvwx"); }), "has 24 characters, at most 23 fit");
  // What was given: options, meshes, files, data, plans.
  says(refused<bad_input>([] { read_mesh("data"); }), "write axes as name=size");
  says(refused<bad_input>([] { rank_pool(0); }), "a mesh axis has at least 1 rank, got: 0");
  says(refused<bad_input>([] { threads(mesh_of({2}), number::float16); }), "float16");
  says(refused<bad_input>([] { session(small().recorded, two_ranks()).use_plan("none.json"); }), "cannot be read");
  says(refused<bad_input>([] { session(small().recorded, {.mesh = "data=0"}); }), "must be a number from 1 to 999");
  says(refused<invalid_machine>([&] { load_machine(machines + "none.json"); }), "cannot be read");
  says(refused<bad_state>([&] { session(small().recorded, two_ranks()).load_state("none"); }), "none: ");
  says(refused<bad_input>([] { session(small().recorded, two_ranks()).load_state("none"); }), "none: ");
  says(refused<bad_input>([&] {
         group_of(load_machine(machines + "h100-8x8-400g.json"), mesh_of({2, 3}), 0);
       }),
       "axis 'data' of size 2 straddles the groups of 8 devices");
  says(refused<invalid_cost_graph>([] {
         cost_graph g;
         g.nodes.push_back({});
         validate(g);
       }),
       "needs at least one choice");
  // Limits of memory, what ranks met, and what a callback stopped.
  says(refused<nothing_fits>([] {
         session_options o = two_ranks();
         o.memory = 1;
         session(small().recorded, o).plan();
       }),
       "memory 1: no plan fits");
  says(refused<rank_failure>(
           [] { rank_pool(2).run([](rank_context& r) { r.rank == 0 ? throw bad_input("out of luck") : 0; }); }),
       "rank 0 failed: out of luck");
  says(refused<cancelled>([] {
         session_options o = two_ranks();
         o.tell = [](const progress&) { return false; };
         session(small().recorded, o).plan();
       }),
       "stopped, as the callback said");
  static_assert(std::is_base_of_v<bad_input, nothing_fits> && std::is_base_of_v<bad_input, invalid_machine> &&
                std::is_base_of_v<bad_input, bad_state> && std::is_base_of_v<bad_input, invalid_cost_graph> &&
                std::is_base_of_v<error, communicator_error> && std::is_base_of_v<error, limit_reached> &&
                std::is_base_of_v<error, device_error>);
}

TEST_CASE("all operators without a kernel are named at once") {
  model net;
  const tensor x = net.weight("w", {{"batch", 4}, {"width", 8}}, {0, 1});
  const tensor y = scaled_by_t<3>{}(scaled_by_t<2>{}(turned(bent(x))));
  net.recorded.loss = op<"batch width, batch width -> ">{}(y, y).id;
  const graph g = differentiate(refine(net.recorded));
  const program p = single(g, sizeof(float));
  says(refused<rank_failure>([&] { ranks_for(p)->run([&](rank& r) { r.load(p, g, 1); }); }),
       "operators 'bent', 'scaled_by', 'turned' are not in the catalogue: give the session .kernels = "
       "cfp::kernels_of<bent_t, scaled_by_t<2>, scaled_by_t<3>, turned_t>()");
}

TEST_CASE("a plan of another model is refused with what is different") {
  const mesh_shape mesh = mesh_of({2});
  const auto ending = [](const auto& bend) {
    model net = small();
    const tensor up = bend(tensor{&net, net.recorded.find("up.linear")});
    const tensor out = op<"batch hidden -> ">{}(up);
    net.recorded.loss = out.id;
    return differentiate(refine(net.recorded));
  };
  const graph g = ending([](tensor x) { return relu(x); }), rival = ending([](tensor x) { return gelu(x); });
  const decision_graph d = decisions(g, parallel_blocks(g), mesh),
                       other = decisions(rival, parallel_blocks(rival), mesh);
  std::mt19937 random(1);
  const std::string text = to_json(random_plan(g, mesh, d, random, 4), g, mesh, d, "mine").dump();
  const auto read = [&](const char* model, const mesh_shape& on, const graph& by, const decision_graph& of) {
    return refused<bad_input>([&] { read_plan(text, "plan", model, by, on, of); });
  };
  CHECK(read("mine", mesh, g, d) == "nothing is refused");
  CHECK(read("yours", mesh, g, d) == "plan: is of model 'mine', this is 'yours'");
  CHECK(read("mine", mesh_of({4}), g, d) == "plan: is for mesh data=2, this one is data=4");
  says(read("mine", mesh, rival, other), "plan: is of a model of ");
}

TEST_CASE("a factor of size 1 that only the rule speaks of is written into the header of a plan") {
  model net;
  const dimension batch{"batch", 4}, time{"time", 4}, wide{"width", 8};
  const tensor x = linear(net.input("x", {batch, time, wide}, element::real, {0, 1}),
                          net.weight("w", {wide, {"inner", 16}}, {0, 0.3}));
  const tensor heads = op<"b s (heads group d) -> b heads group s d">{}(x, size_of{"heads", 4}, size_of{"group", 1});
  const tensor y = op<"b heads group s d -> b s (heads group d)">{}(gelu(heads));
  net.recorded.loss = op<"b s d, b s d -> ">{}(y, y).id;
  const graph g = differentiate(refine(net.recorded));
  const mesh_shape mesh = mesh_of({2});
  const block_structure blocks = parallel_blocks(g);
  const decision_graph d = decisions(g, blocks, mesh);
  std::mt19937 random(1);
  const plan p = random_plan(g, mesh, d, random, sizeof(float));
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("cfp_trust_" + std::to_string(std::random_device{}()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "plan.hpp") << plan_header("plan", "heads", p, g,
                                                    segment_times(blocks, segments(g, blocks), d));
  std::ofstream(folder / "main.cpp") << "#include \"plan.hpp\"\nint main() {}\n";
  const std::string command =
      std::string(CFP_CXX) + " -std=c++20 -fsyntax-only -I" CFP_SOURCE_DIR "/include " + (folder / "main.cpp").string();
  CHECK(std::system(command.c_str()) == 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("targets that may be ignored are those of a loss, and other negative ones are refused") {
  const graph g = classifier(1);
  std::vector<batch> data{rows_of(0, 5)};
  std::get<std::vector<std::int32_t>>(data[0]["targets"])[2] = -1;
  const auto feed = [&](const graph& of) {
    return refused<bad_input>([&] {
      const program p = single(of, sizeof(float));
      shared_batches batches(of, [&](long) { return data[0]; });
      ranks_for(p)->run([&](rank& r) {
        const auto run = r.load(p, of, 3);
        try {
          one_step(*run, p, batches, 1);
        } catch (const shared_batches::ended&) {}
      });
      batches.rethrow();
    });
  };
  says(feed(g),
       ": input 'targets' has index -1 at place 2, the model takes those from 0 to 7 and -100, which is ignored");
  data[0] = rows_of(0, 5);
  CHECK(feed(g) == "nothing is refused");
  says(feed(classifier(1, false)), "has index -100 at place ");
  model net;
  const tensor row = net.input("row", {{"batch", 4}}, element::index, targets_below(8));
  const tensor x = lookup(net.weight("table", {{"rows", 8}, {"width", 4}}, {0, 1}), row);
  net.recorded.loss = op<"batch width, batch width -> ">{}(x, x).id;
  CHECK(refused<bad_input>([&] { checked(net.recorded); }) ==
        "input 'row' may hold ignored targets, and lookup has no row for them: declare it with {0, 0, 8}");
}

TEST_CASE("a family's targets may be ignored where its configuration says so, and else its graph is what it was") {
  families::transformer c = tiny_config();
  c.layers = 1;
  const graph plain = families::decoder(c);
  c.ignored_targets = true;
  const graph ignoring = families::decoder(c);
  CHECK(ignoring.size() == plain.size() + 2);
  CHECK(ignoring[ignoring.find("targets")].fill.may_be_ignored);
  CHECK_FALSE(plain[plain.find("targets")].fill.may_be_ignored);
}

}  // namespace trust_tests
