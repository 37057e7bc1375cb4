// Planning by what instructions take on one GPU, emulated: a device runs what operators a plan of any mesh has, once
// per kind; and the stopwatch, on a device whose times and clocks are written down.
#include "../catch.hpp"

#include "../runtime/small.hpp"

#include <cfp/backend/emulated/device.hpp>
#include <cfp/plan/machine_search.hpp>
#include <cfp/profile/measure/instruction_timer.hpp>

namespace timer_cases {

using namespace cfp;
using namespace small_tests;
using namespace families;

namespace {

transformer without_dropout(transformer c) {
  c.embedding_dropout = c.attention_dropout = c.residual_dropout = 0;
  return c;
}

// Bytes of all that has a place in the arena, whether at the same time or not.
long planned(const program& p) {
  long out = 0;
  for (const buffer& b : p.buffers)
    if (b.root == &b - p.buffers.data() && b.offset >= 0) out += b.bytes;
  return out;
}

// What is issued takes one unit more each time, as long again while the clock is at half of its rate.
struct written_down {
  std::vector<double> MHz;  // after every reading
  mutable std::size_t readings = 0;
  double now = 0;
  std::vector<double> ticks = std::vector<double>(16);
  int swept = 0, waited = 0;

  double rate() const { return MHz[std::min(readings, MHz.size() - 1)]; }
  void work() { now += 1000 / rate(); }
  void tick(int n) { ticks[static_cast<std::size_t>(n)] = now; }
  double between(int a, int b) const { return ticks[static_cast<std::size_t>(b)] - ticks[static_cast<std::size_t>(a)]; }
  void sweep() { ++swept; }
  double clock_MHz() const { return readings++, MHz[std::min(readings - 1, MHz.size() - 1)]; }
  int record(const std::function<void()>&) const { return 0; }
  void replay(int) const {}
  void wait() { ++waited; }
};

}  // namespace

TEST_CASE("a stopwatch leaves out what ran while the clock had dropped") {
  written_down d{{1000, 500, 500, 1000, 800, 1000}};
  stopwatch<written_down> watch(d);
  const timing t = watch.cold([&] { d.work(); }, {1e9, 5, 15});
  CHECK(t.ms == Approx(1));
  CHECK(t.repeats == 15);
  CHECK(t.slow == 15);
  CHECK(t.least_MHz == 500);
  CHECK(t.most_MHz == 1000);
  CHECK(d.swept == 30);
  // One that does not recover is told, and what there is is taken.
  d.MHz = {1000, 500};
  d.readings = 1;
  const timing low = watch.cold([&] { d.work(); }, {0, 5, 15});
  CHECK(low.ms == Approx(2));
  CHECK(low.most_MHz == 500);
  // Of several in one go, the time of one.
  d.MHz = {1000};
  CHECK(watch.warm([&] { d.work(); }).ms == Approx(1));
}

TEST_CASE("kinds tell apart what takes different times, and nothing else") {
  // A piece of two, of four, and of two over an axis of another name.
  const auto slice = [](const mesh_shape& mesh, int axis) {
    conversion_step s;
    s.kind = conversion_step::slice;
    s.axis = static_cast<signed char>(axis);
    s.dim = 0;
    extents shape;
    for (const long n : {8l, 16l}) shape.push(n);
    return kind_of(s, partition::replicated(2), shape, 2, mesh).label();
  };
  CHECK(slice(mesh_of({2, 4}), 0) != slice(mesh_of({2, 4}), 1));
  CHECK(slice(mesh_of({2, 2}), 0) == slice(mesh_of({2, 2}), 1));
  // How far a mask reaches.
  const graph g = differentiate(refine(decoder(without_dropout(tiny_config()))));
  graph far = g;
  for (operation& o : far.operations)
    if (!o.r.coordinates.empty() && o.scalars.size() > 1) o.scalars[1] += 5;
  const program p = single(g, sizeof(bf16));
  int differ = 0;
  for (const instruction& i : p.code) {
    if (i.kind != instruction::compute) continue;
    const operation& o = g.at(i.op);
    const bool other = kind_of(i, p, g).label() != kind_of(i, p, far).label();
    CHECK(other == (!o.r.coordinates.empty() && o.scalars.size() > 1));
    differ += other;
  }
  CHECK(differ > 0);
}

TEST_CASE("one timer serves one graph after another") {
  const emulated::parts<bf16> shared;
  emulated::lone_gpu<bf16> gpu(shared);
  instruction_timer<emulated::lone_gpu<bf16>> timer(gpu, {0, 1, 1});
  for (int size = 2; size <= 4; size *= 2) {
    transformer c = without_dropout(tiny_config());
    c.layers = 1;
    c.width = 16 * size;
    c.heads = size;
    const graph g = differentiate(refine(decoder(c)));
    program p = single(g, sizeof(bf16));
    shared.lowered_for().complete(p, g);
    for (const instruction& i : p.code)
      if (!i.nothing) CHECK(timer(i, p, g).ms > 0);
  }
}

TEST_CASE("plans of a mesh are priced by what one GPU runs, and again from its table") {
  transformer c = without_dropout(tiny_config());
  c.layers = 2;
  const graph g = differentiate(refine(decoder(c)));
  const emulated::parts<bf16> shared;
  emulated::lone_gpu<bf16> gpu(shared);
  instruction_timer<emulated::lone_gpu<bf16>> timer(gpu, {0, 1, 1});
  std::map<std::string, instruction_time> table;
  const mesh_shape mesh = mesh_of({2});
  const decision_graph d = decisions(g, parallel_blocks(g), mesh);
  const machine m = plain_machine(mesh);
  known_instructions known(table,
                           [&](const instruction& i, const program& p, const graph& of) { return timer(i, p, of).ms; });
  int told = 0;
  known.tell = [&](const std::string&) { ++told; };
  machine_options options;
  options.lowered_for = shared.lowered_for();
  options.known = &known;
  options.counted = {1};
  machine_search search(g, mesh, d, m, options);
  const priced_plans plans = search.compare();
  REQUIRE(plans.found() != nullptr);
  CHECK(known.asked == static_cast<int>(table.size()));
  CHECK(told == known.asked);
  for (const auto& [label, t] : table) {
    INFO(label);
    CHECK(t.ms > 0);
    for (int s = 0; s <= conversion_step::all_to_all; ++s)
      CHECK(!label.starts_with(step_names[static_cast<std::size_t>(s)]));
  }
  for (const std::vector<evaluated>* some : {&plans.candidates, &plans.usual, &plans.alpa})
    for (const evaluated& e : *some) {
      std::set<std::string> fused;
      double operators = 0;
      for (std::size_t i = 0; i < e.p.code.code.size(); ++i) {
        const instruction& x = e.p.code.code[i];
        if (x.fusion >= 0) fused.insert(std::string(e.p.code.fusions[static_cast<std::size_t>(x.fusion)].label));
        if (x.nothing || (x.communicates())) continue;
        REQUIRE(table.count(kind_of(x, e.p.code, g).label()) == 1);
        operators += e.p.code.runs(i) * table.at(kind_of(x, e.p.code, g).label()).ms;
      }
      CHECK(e.when.operators == Approx(operators));
      if (e.p.name == "data_parallel") CHECK(fused.count("attention") == 1);
      // Kernels that compute more than one operator store less.
      const plan apart = realise("apart", g, mesh, d, e.p.choices, sizeof(bf16), e.order);
      CHECK(planned(e.p.code) < planned(apart.code));
      CHECK(e.p.code.code.size() < apart.code.code.size());
      const work_done all = work_of(e.p.code, g), each = work_of(apart.code, g);
      CHECK(all.flops == Approx(each.flops));
      CHECK(all.traffic < each.traffic);
      CHECK(all.sent == each.sent);
    }
  // Without the GPU.
  known_instructions from_table(table);
  options.known = &from_table;
  machine_search again(g, mesh, d, m, options);
  const priced_plans same = again.compare();
  REQUIRE(same.found() != nullptr);
  CHECK(same.found()->p.choices == plans.found()->p.choices);
  CHECK(same.found()->when.ms == Approx(plans.found()->when.ms));
  CHECK(from_table.asked == 0);
  CHECK(from_table.unknown.empty());
  // What the table lacks and the device cannot run is priced as the machine is described; it is asked once.
  const plan& found = plans.found()->p;
  const auto computes = [](const instruction& x) { return !x.nothing && x.kind == instruction::compute; };
  const auto lacked = std::find_if(found.code.code.begin(), found.code.code.end(), computes);
  REQUIRE(table.erase(kind_of(*lacked, found.code, g).label()) == 1);
  int refused = 0;
  known_instructions too_large(
      table, [&](const instruction&, const program&, const graph&) { return ++refused, std::nullopt; });
  options.known = &too_large;
  machine_search lacking(g, mesh, d, m, options);
  lacking.evaluate("the same plan", found.choices, plans.found()->order);
  CHECK(too_large.unknown.size() == 1);
  CHECK(refused == 1);
  CHECK(lacking.compare().found() != nullptr);
  CHECK(lacking.times().described > again.times().described);
}

}  // namespace timer_cases
