// The evaluator against the engine, on CPU ranks of this machine: plans people use, Alpa's, the found one and its
// nearest rivals, priced from times of single instructions and then run in turn: over memory and over a slower link,
// collectives in line and beside. Prints how well the two rankings agree, whether any plan beats the found one beyond
// doubt, and what running collectives beside saves.
#include "carried.hpp"
#include "report.hpp"

#include <cfp/backend/host/side_stream.hpp>
#include <cfp/backend/ranks_on.hpp>
#include <cfp/backend/threads.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>
#include <cfp/families/byte_text.hpp>
#include <cfp/families/families.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/machine_search.hpp>
#include <cfp/profile/measure/profiler.hpp>
#include <cfp/session/race.hpp>

#include <cblas.h>

#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>

#include <unistd.h>

using namespace cfp;
using json = nlohmann::ordered_json;

namespace {

std::vector<double> ranks_of(const std::vector<double>& x) {
  std::vector<double> out;
  for (const double a : x) {
    double below = 0, equal = 0;
    for (const double b : x) below += b < a, equal += b == a;
    out.push_back(below + (equal - 1) / 2);
  }
  return out;
}

/// Spearman's rank correlation.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

/// What running beside costs on ranks of this machine, measured: how much longer products take while a collective is
/// under way, and the seconds until a stream goes on that waited for the other (mean: they are paid every time).
struct beside_costs {
  double contention = 1, hand_over = 0;
};
beside_costs measure_beside(const mesh_shape& mesh, const std::vector<rank_link>& links) {
  rank_pool pool(sizes(mesh));
  for (std::size_t a = 0; a < links.size(); ++a) pool.set_link(static_cast<int>(a), links[a]);
  constexpr int n = 256, repeats = 40, handed = 60;
  constexpr std::size_t sent = 1 << 18;
  std::vector<beside_costs> of(static_cast<std::size_t>(pool.size()));
  pool.run([&](rank_context& rank) {
    using clock = std::chrono::steady_clock;
    const auto seconds = [](clock::duration d) { return std::chrono::duration<double>(d).count(); };
    std::vector<float> a(n * n, 1), b(n * n, 1), c(n * n), gradient(sent, 1);
    const auto product = [&] {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n);
    };
    std::atomic<bool> enough{false};
    host::side_stream stream;
    const auto exchange = [&] {
      for (std::int32_t all = 0; all == 0;) {  // until no rank's operators are left
        rank.axes[0].all_reduce(gradient.data(), sent, reduction::max);
        all = enough;
        rank.axes[0].all_reduce(&all, 1, reduction::min);
      }
    };
    std::vector<double> alone, beside;
    const auto work = [&](std::vector<double>& ms) {
      for (int r = 0; r < repeats; ++r) {
        const auto before = clock::now();
        product();
        ms.push_back(seconds(clock::now() - before));
      }
    };
    rank.world.barrier();
    work(alone);
    rank.world.barrier();
    stream.issue(exchange);
    work(beside);
    enough = true;
    stream.wait_all();
    double late = 0;
    for (int h = 0; h < handed; ++h) {
      product();
      const auto before = clock::now();
      stream.issue([] {});
      stream.wait_all();
      late += seconds(clock::now() - before) / (2 * handed);  // there and back
    }
    of[static_cast<std::size_t>(rank.rank)] = {
        std::accumulate(beside.begin(), beside.end(), 0.0) / std::accumulate(alone.begin(), alone.end(), 0.0), late};
    rank.world.barrier();
  });
  beside_costs mean{0, 0};
  for (const beside_costs& o : of)
    mean.contention += o.contention / pool.size(), mean.hand_over += o.hand_over / pool.size();
  mean.contention = std::clamp(mean.contention, 1.0, 2.0);
  return mean;
}

std::string text_of(double x) {
  char out[32];
  std::snprintf(out, sizeof out, "%.3g", x);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The evaluator's ranking of plans against their measured one, on CPU ranks", "plan_ranking");
  std::string to, model = "gpt2";
  families::model_sizes given{4, 32, 1};
  int rivals = 12, steps = 20, rounds = 5;
  rank_link slow{2e-5, 1e9};
  app.add_option("--json", to, "write the figures here");
  app.add_option("--model", model, "of examples/models")->capture_default_str();
  app.add_option("--layers", given.layers)->capture_default_str();
  app.add_option("--batch", given.batch)->capture_default_str();
  app.add_option("--seq", given.sequence)->capture_default_str();
  app.add_option("--rivals", rivals, "best plans that differ from the found one in one decision")
      ->capture_default_str();
  app.add_option("--steps", steps, "of each plan, in turn")->capture_default_str();
  app.add_option("--rounds", rounds, "in which instructions are measured")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--bandwidth", slow.bandwidth,
                 "bytes per second a rank sends over the link (0: ranks share memory only)")
      ->capture_default_str();
  app.add_option("--latency", slow.latency, "seconds of a collective over it")->capture_default_str();
  try {
    app.parse(argc, argv);
    const families::built_model net = build_model(families::config_file(carried_model(model)), given);
    const graph g = differentiate(refine(net.forward));
    mesh_shape mesh;
    mesh.axes.push({cfp::name("data"), 2});
    const decision_graph d = decisions(g, parallel_blocks(g), mesh);
    const families::byte_text text(std::string(1 << 16, 'a'), given.batch, given.sequence, 1, net.inputs);
    json out{{"model", model},
             {"layers", given.layers},
             {"batch", given.batch},
             {"sequence", given.sequence},
             {"networks", json::array()}};
    // Ranks that share memory, and the same joined by a link: then a collective mostly waits, and leaves its core to
    // operators.
    std::vector<std::vector<rank_link>> networks{{}};
    if (slow.bandwidth > 0) networks.push_back({slow});
    for (const std::vector<rank_link>& links : networks) {
      // Everything is measured in several rounds, the median counts: a machine that is now quicker, now slower shall
      // not be quick for one instruction only.
      const std::unique_ptr<backend> ranks = linked_threads(mesh, number::float32, links);
      profile_table table;
      std::map<std::string, std::vector<double>> measured_ms;
      beside_costs costs;
      for (int round = 1; round <= rounds; ++round) {
        profile_table now;
        profiler measure_with(g, d, *ranks, now);
        if (isatty(2))
          measure_with.tell = [round, rounds](int done, int all, const std::string&) {
            std::fprintf(stderr, "\r\033[Kmeasuring %d of %d, round %d of %d", done, all, round, rounds);
          };
        measure_with.build();
        for (const auto& [kind, one] : now.instructions) {
          table.instructions.try_emplace(kind, one);
          measured_ms[kind].push_back(one.ms);
        }
        const beside_costs again = measure_beside(mesh, links);
        costs.contention += (again.contention - 1) / rounds;
        costs.hand_over += again.hand_over / rounds;
      }
      for (auto& [kind, one] : table.instructions) one.ms = median(measured_ms.at(kind));
      // This machine: figures that were measured, and for what was not (rates are of no matter) a description.
      machine here = plain_machine(mesh, 5e10, 1e10, 1e-6, {{1e-5, 5e9}});
      here.device.memory = 1l << 40;
      here.device.contention = costs.contention;
      here.device.hand_over = costs.hand_over;
      for (const bool overlap : {false, true}) {
        machine_options options;
        options.lowered_for = sizeof(float);
        options.overlap = overlap;
        known_instructions as_measured(table.instructions);
        options.known = &as_measured;
        machine_search search(g, mesh, d, here, options);
        std::vector<evaluated> plans = search.candidates();
        for (const named_plan& p : usual_plans(mesh, has_experts(g)))
          if (auto e = search.usual(p)) plans.push_back(std::move(*e));
        if (auto e = search.alpa(false)) plans.push_back(std::move(*e));
        const auto fastest = std::min_element(
            plans.begin(), plans.end(), [](const evaluated& a, const evaluated& b) { return a.when.ms < b.when.ms; });
        std::rotate(plans.begin(), fastest, fastest + 1);
        plans[0].p.name = "found (" + plans[0].p.name + ")";
        const std::size_t named = plans.size();
        std::vector<evaluated> near;
        std::set<std::vector<int>> known;
        for (const evaluated& e : plans) known.insert(e.p.choices);
        for (std::size_t n = 0; n < d.nodes.size(); ++n)
          for (std::size_t c = 0; c < d.nodes[n].choices(); ++c) {
            std::vector<int> only(d.nodes.size(), -1);
            only[n] = static_cast<int>(c);
            auto e = search.with(decision_label(d.nodes[n]) + " " + d.nodes[n].names[c], only);
            if (e && known.insert(e->p.choices).second) near.push_back(std::move(*e));
          }
        std::sort(near.begin(), near.end(),
                  [](const evaluated& a, const evaluated& b) { return a.when.ms < b.when.ms; });
        for (std::size_t i = 0; i < near.size() && i < static_cast<std::size_t>(rivals); ++i)
          plans.push_back(std::move(near[i]));
        // So many at a time as memory holds, the found one always among them. Its own time is the median of all its
        // steps.
        const auto run = [&](const std::vector<const plan*>& some, std::uint64_t seed) {
          std::vector<rank_programs> programs;
          for (const plan* p : some) programs.push_back(p->on_ranks());
          const auto seen =
              race(*ranks, programs, g, text, {steps, seed, [](int done, int all) {
                                                 if (isatty(2))
                                                   std::fprintf(stderr, "\r\033[Kstep %d of %d", done, all);
                                                 return true;
                                               }});
          if (isatty(2)) std::fprintf(stderr, "\r\033[K");
          return seen;
        };
        constexpr std::size_t at_once = 8;
        std::vector<observed> seen(plans.size());
        std::vector<std::array<double, 3>> ratio(plans.size(), {1, 1, 1});
        for (std::size_t first = 1; first < plans.size(); first += at_once - 1) {
          std::vector<const plan*> racing{&plans[0].p};
          for (std::size_t i = first; i < plans.size() && racing.size() < at_once; ++i) racing.push_back(&plans[i].p);
          std::vector<observed> now = run(racing, 1);
          seen[0].ms.insert(seen[0].ms.end(), now[0].ms.begin(), now[0].ms.end());
          seen[0].peak_bytes = now[0].peak_bytes;
          for (std::size_t k = 1; k < now.size(); ++k) {
            ratio[first + k - 1] = paired_ratio(now[k].ms, now[0].ms);
            seen[first + k - 1] = std::move(now[k]);
          }
        }
        const std::string joined = links.empty() ? "memory"
                                                 : "a link of " + text_of(slow.bandwidth / 1e9) + " GB/s and " +
                                                       text_of(slow.latency * 1e6) + " us";
        std::printf(
            "\nranks joined by %s, collectives %s operators; %d figures measured, %d described; contention %.2f, "
            "hand-over %.0f us\n%-72s %10s %10s %24s %9s\n",
            joined.c_str(), overlap ? "beside" : "in line with", search.times().measured, search.times().described,
            costs.contention, 1e6 * costs.hand_over, "plan", "evaluated", "measured", "time / found's", "peak");
        std::vector<double> priced, measured, error;
        json list = json::array();
        bool beaten = false;
        double memory = 0;
        for (std::size_t i = 0; i < plans.size(); ++i) {
          priced.push_back(plans[i].when.ms);
          measured.push_back(ratio[i][0] * median(seen[0].ms));
          error.push_back(std::abs(priced[i] / measured[i] - 1));
          if (ratio[i][2] < 0.98) {  // must be so on fresh steps too
            const auto again = run({&plans[0].p, &plans[i].p}, 2);
            ratio[i] = paired_ratio(again[1].ms, again[0].ms);
          }
          beaten = beaten || ratio[i][2] < 0.98;
          const double peak = static_cast<double>(plans[i].peak) / static_cast<double>(seen[i].peak_bytes);
          memory = std::max(memory, std::abs(peak - 1));
          std::printf("%-72.72s %7.1f ms %7.1f ms   %5.3f [%5.3f, %5.3f] %8.4f\n", plans[i].p.name.c_str(),
                      priced.back(), measured.back(), ratio[i][0], ratio[i][1], ratio[i][2], peak);
          list.push_back({{"name", plans[i].p.name},
                          {"evaluated_ms", priced.back()},
                          {"measured_ms", measured.back()},
                          {"ratio_to_found", ratio[i]},
                          {"peak_evaluated_over_measured", peak}});
        }
        if (overlap) {  // named plans once more with collectives in line: what running them beside saves
          options.overlap = false;
          machine_search other(g, mesh, d, here, options);
          std::printf("saved by running collectives beside operators, evaluated / measured:");
          for (std::size_t i = 0; i < named; ++i) {
            const evaluated in_line = other.evaluate("", plans[i].p.choices, plans[i].order);
            const auto now = run({&in_line.p, &plans[i].p}, 3);
            const auto saved = paired_ratio(now[1].ms, now[0].ms);
            std::printf("%s %s %.1f%% / %.1f%%", i ? "," : "", plans[i].p.name.c_str(),
                        100 * (1 - plans[i].when.ms / in_line.when.ms), 100 * (1 - saved[0]));
            list[i]["beside_over_in_line_evaluated"] = plans[i].when.ms / in_line.when.ms;
            list[i]["beside_over_in_line_measured"] = saved;
          }
          std::printf("\n");
        }
        const auto first = [&](std::vector<double> x) { return x.resize(named), x; };  // rivals are nearly equal
        const double agreement = rank_correlation(first(priced), first(measured));
        const double accuracy =
            1 - std::accumulate(error.begin(), error.end(), 0.0) / static_cast<double>(error.size());
        std::printf(
            "rank correlation of named plans %.3f; accuracy %.1f%% (1 - mean of |evaluated - measured| / measured); "
            "evaluated times off by %.1f%% (median), at most %.1f%%; memory by at most %.2f%%; %s\n",
            agreement, 100 * accuracy, 100 * median(error), 100 * *std::max_element(error.begin(), error.end()),
            100 * memory,
            beaten ? "A PLAN BEATS THE FOUND ONE by more than 2%" : "no plan beats the found one by more than 2%");
        std::fflush(stdout);
        out["networks"].push_back({{"joined_by", joined},
                                   {"overlap", overlap},
                                   {"contention", costs.contention},
                                   {"hand_over", costs.hand_over},
                                   {"rank_correlation", agreement},
                                   {"median_error", median(error)},
                                   {"accuracy", accuracy},
                                   {"memory_error", memory},
                                   {"beaten", beaten},
                                   {"plans", list}});
      }
    }
    if (!to.empty()) write_file(to, out.dump(1));
  } catch (...) {
    return report<CLI::ParseError>(app);
  }
}
