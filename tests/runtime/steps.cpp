// Steps between partitions, over one axis and over several at once, carried out on devices that are arrays: what they
// say of themselves (groups, counts, local shapes, bytes) is all that is used, and every device ends with what it
// should hold.
#include "../catch.hpp"

#include "../from_environment.hpp"

#include <cfp/core.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace steps_tests {

namespace {

using namespace cfp;

using values = std::vector<long>;

int below(std::mt19937& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

// Calls f(global index) for every element of a box.
template <class F>
void each_index(const extents& sizes, F&& f) {
  extents at{{}, sizes.size()};
  for (long n = elements(sizes); n > 0; --n) {
    f(at);
    for (int d = sizes.size() - 1; d >= 0 && ++at[d] == sizes[d]; --d) at[d] = 0;
  }
}
long flat(const extents& at, const extents& sizes) {
  long n = 0;
  for (int d = 0; d < sizes.size(); ++d) n = n * sizes[d] + at[d];
  return n;
}

struct devices {
  mesh_shape mesh;
  extents shape;
  std::vector<values> held;

  // Devices that differ from this one along these axes only, in their order.
  std::vector<int> group(int device, const list<name, max_axes>& axes) const {
    std::map<long, int> found;
    for (int other = 0; other < mesh.devices(); ++other) {
      bool same_elsewhere = true;
      for (int a = 0; a < mesh.rank(); ++a)
        same_elsewhere = same_elsewhere &&
                         (axes.contains(mesh.axes[a].label) || mesh.coordinate(device, a) == mesh.coordinate(other, a));
      long place = 0;
      for (const name& label : axes) {
        const int a = mesh.find(label.view());
        place = place * mesh.size(a) + mesh.coordinate(other, a);
      }
      if (same_elsewhere) found[place] = other;
    }
    std::vector<int> out;
    for (const auto& [place, other] : found) out.push_back(other);
    return out;
  }

  // Element `at` of a dimension that is cut into pieces: which piece, and where in it.
  values step(const tensor_step& s, int device) const {
    const std::vector<int> all = group(device, s.axes);
    REQUIRE(static_cast<long>(all.size()) == s.devices);
    long me = 0;
    while (all[static_cast<std::size_t>(me)] != device) ++me;
    REQUIRE(s.key(mesh, device) == me);
    for (const int other : all) REQUIRE(s.color(mesh, other) == s.color(mesh, device));
    if (!s.dim.empty() && s.kind != conversion_step::all_to_all) {
      REQUIRE(s.contiguous() == (s.runs() == 1));
      REQUIRE(s.runs() * s.run() * s.devices == std::max(elements(s.before), elements(s.after)));
    }
    const auto of = [&](long k) -> const values& {
      return held[static_cast<std::size_t>(all[static_cast<std::size_t>(k)])];
    };
    values out;
    each_index(s.after, [&](extents at) {
      long value = 0;
      switch (s.kind) {
        case conversion_step::all_reduce:
        case conversion_step::reduce_scatter:
          if (s.kind == conversion_step::reduce_scatter) at[s.at] += me * s.after[s.at];
          for (long k = 0; k < s.devices; ++k) value += of(k)[static_cast<std::size_t>(flat(at, s.before))];
          break;
        case conversion_step::all_gather: {
          const long from = at[s.at] / s.before[s.at];
          at[s.at] %= s.before[s.at];
          value = of(from)[static_cast<std::size_t>(flat(at, s.before))];
          break;
        }
        case conversion_step::all_to_all: {
          const long from = at[s.at] / s.before[s.at];
          at[s.at] %= s.before[s.at];
          at[s.to_at] += me * s.after[s.to_at];
          value = of(from)[static_cast<std::size_t>(flat(at, s.before))];
          break;
        }
        case conversion_step::slice:
          at[s.at] += me * s.after[s.at];
          value = of(me)[static_cast<std::size_t>(flat(at, s.before))];
          break;
        case conversion_step::mask: value = me == 0 ? of(me)[static_cast<std::size_t>(flat(at, s.before))] : 0; break;
        case conversion_step::pad: {
          const long piece = at[s.at] / s.before[s.at];
          at[s.at] %= s.before[s.at];
          value = piece == me ? of(me)[static_cast<std::size_t>(flat(at, s.before))] : 0;
          break;
        }
      }
      out.push_back(value);
    });
    return out;
  }
  void run(const tensor_step& s) {
    std::vector<values> next;
    for (int device = 0; device < mesh.devices(); ++device) next.push_back(step(s, device));
    held = next;
  }
};

// What devices hold of a tensor whose elements are numbered; parts of sums are random but for the last, which completes
// them.
devices hold(std::mt19937& random, const mesh_shape& mesh, const extents& shape, const partition& p) {
  devices out{mesh, shape, {}};
  const extents local = local_shape(p, shape, mesh);
  std::map<std::pair<std::vector<int>, long>, long>
      given;  // by coordinates along all axes that are no parts, and element
  for (int device = 0; device < mesh.devices(); ++device) {
    std::vector<int> place;
    bool last = true;
    for (int a = 0; a < mesh.rank(); ++a) {
      place.push_back(p.partial[a].owed ? -1 : mesh.coordinate(device, a));
      last = last && (!p.partial[a].owed || mesh.coordinate(device, a) == mesh.size(a) - 1);
    }
    values mine;
    each_index(local, [&](extents at) {
      for (int d = 0; d < shape.size(); ++d) at[d] += piece_of(p, d, mesh, device) * local[d];
      const long element = flat(at, shape);
      long& sum = given[{place, element}];
      const long value = last ? element - sum : static_cast<long>(random() % 100);
      sum += value;
      mine.push_back(value);
    });
    out.held.push_back(mine);
  }
  return out;
}

// The sum over what parts there are is the tensor, everywhere.
bool holds(const devices& x, const partition& p) {
  const extents local = local_shape(p, x.shape, x.mesh);
  std::map<std::pair<std::vector<int>, long>, long> sums;
  for (int device = 0; device < x.mesh.devices(); ++device) {
    if (static_cast<long>(x.held[static_cast<std::size_t>(device)].size()) != elements(local)) return false;
    std::vector<int> place;
    for (int a = 0; a < x.mesh.rank(); ++a) place.push_back(p.partial[a].owed ? -1 : x.mesh.coordinate(device, a));
    std::size_t k = 0;
    each_index(local, [&](extents at) {
      for (int d = 0; d < x.shape.size(); ++d) at[d] += piece_of(p, d, x.mesh, device) * local[d];
      sums[{place, flat(at, x.shape)}] += x.held[static_cast<std::size_t>(device)][k++];
    });
  }
  for (const auto& [at, sum] : sums)
    if (sum != at.second) return false;
  return true;
}

partition some_partition(std::mt19937& random, const extents& shape, const mesh_shape& mesh) {
  for (;;) {
    partition p = partition::replicated(shape.size());
    for (int a = 0; a < mesh.rank(); ++a) {
      const int what = below(random, shape.size() + 2);
      if (mesh.size(a) == 1 || what == 0) continue;
      if (what == 1) p.partial[a] = {true, reduction::sum};
      else p.dims[what - 2].insert(below(random, p.dims[what - 2].size() + 1), static_cast<signed char>(a));
    }
    if (divides(p, shape, mesh)) return p;
  }
}

mesh_shape mesh_of(const std::vector<int>& sizes) {
  mesh_shape m;
  for (int n : sizes) m.axes.push({name(std::string(1, static_cast<char>('a' + m.rank()))), n});
  return m;
}

dimensions named(const extents& shape) {
  static const char* const names[] = {"x", "y", "z"};
  dimensions d;
  for (int i = 0; i < shape.size(); ++i) d.push(names[i], shape[i], i);
  return d;
}

}  // namespace

TEST_CASE("steps deliver what partitions mean, over one axis and several") {
  const long cases = how_many(50, 50, 4);
  std::mt19937 random(11);
  int wide = 0, compared = 0;
  for (const std::vector<int>& sizes :
       std::vector<std::vector<int>>{{2}, {4}, {2, 2}, {2, 3}, {1, 4}, {2, 1, 2}, {2, 2, 2}, {2, 3, 2}}) {
    const mesh_shape mesh = mesh_of(sizes);
    for (long n = 0; n < cases; ++n) {
      extents shape;
      for (int d = 1 + below(random, 3); d > 0; --d) shape.push(12 * (1 + below(random, 2)));
      const partition from = some_partition(random, shape, mesh), to = some_partition(random, shape, mesh);
      const dimensions dims = named(shape);
      INFO("from " << std::string(describe(from, dims.parts, mesh).view()) << " to "
                   << std::string(describe(to, dims.parts, mesh).view()));
      for (const long call : {0L, bytes_of_a_call}) {
        const conversion c = convert(from, to, shape, 4, mesh, {true, call}),
                         narrow = convert(from, to, shape, 4, mesh);
        REQUIRE(c.possible);
        const step_list steps = detail::tell_steps(c, from, dims, shape, mesh, 4);
        devices x = hold(random, mesh, shape, from);
        REQUIRE(holds(x, from));
        for (const tensor_step& s : steps) {
          x.run(s);
          wide += s.axes.size() > 1;
        }
        CHECK(holds(x, to));
        CHECK(steps.bytes() == c.bytes);
        bool helped = c.steps.size() == 1;  // taken at once; and axes that can stay are left alone
        for (const conversion_step& s : narrow.steps)
          helped = helped || (detail::moving_axes(from, to, mesh) >> s.axis & 1) == 0;
        if (helped) continue;
        ++compared;
        if (call == 0) CHECK(c.bytes <= narrow.bytes);
        else CHECK(c.bytes + c.collectives() * call <= narrow.bytes + narrow.collectives() * call);
      }
    }
  }
  CHECK(wide > cases);
  CHECK(compared > cases);
}

TEST_CASE("sizes that only run time knows") {
  using grid = mesh<axis<"data", 2>, axis<"model", 4>>;
  using split_rows = sharded<dims<"rows", "columns">, grid, split<"rows", "model">>;
  using whole = sharded<dims<"rows", "columns">, grid>;
  CHECK(steps<split_rows, whole>.bytes() == 0);
  const step_list known = steps<split_rows, whole>.at({{8, 3}, 2});
  CHECK(known.size() == 1);
  CHECK(known[0].count() == 6);
  CHECK(known[0].contiguous());
  CHECK(known.bytes(2) == 3 * 24 * 2 / 4);
  CHECK_THROWS_WITH((steps<split_rows, whole>.at({{10, 3}, 2})),
                    "dimension 'rows' has 10 elements, which 4 devices (model=4) do not divide; take a multiple of 4 "
                    "or fewer devices");
}

}  // namespace steps_tests
