// The trainer on threads: a rank each. Sums are taken in the order of the ranks, so runs are the same to the bit.
#include "trainer.hpp"

#include <barrier>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace trainer {

// What the ranks show each other.
struct board {
  explicit board(int ranks) : gate(ranks), shown(static_cast<std::size_t>(ranks)) {}
  std::barrier<> gate;
  std::vector<const void*> shown;
};

template <class Number>
class thread_machine {
 public:
  using number = Number;
  thread_machine(board& all, int rank) : board_(all), rank_(rank) {}

  int rank() const { return rank_; }
  template <class T>
  std::shared_ptr<T> memory(long count) const {
    const auto items = std::make_shared<std::vector<T>>(static_cast<std::size_t>(count));
    return {items, items->data()};
  }
  std::vector<number> fetch(const number* x, long count) const { return {x, x + count}; }
  template <class F>
  void each(long count, const F& f) const {
    for (long i = 0; i < count; ++i) f(i);
  }

  void all_reduce(const cfp::tensor_step& step, const number* in, number* out) const {
    meet(step, in, [&](const auto& group) { combine(group, 0, out, step.count(), step.combine); });
  }
  void reduce_scatter(const cfp::tensor_step& step, const number* in, number* out) const {
    const long from = step.key(gpt::mesh::shape, rank_) * step.count();
    meet(step, in, [&](const auto& group) { combine(group, from, out, step.count(), step.combine); });
  }
  void all_gather(const cfp::tensor_step& step, const number* in, number* out) const {
    meet(step, in, [&](const auto& group) {
      for (const int other : group) out = std::copy_n(of(other), step.count(), out);
    });
  }

 private:
  const number* of(int other) const {
    return static_cast<const number*>(board_.shown[static_cast<std::size_t>(other)]);
  }

  // All ranks call the same collectives, so all of them wait, whatever the group: once until every `in` is there, and
  // once until no one reads them.
  template <class Work>
  void meet(const cfp::tensor_step& step, const number* in, const Work& work) const {
    board_.shown[static_cast<std::size_t>(rank_)] = in;
    board_.gate.arrive_and_wait();
    std::vector<int> group(static_cast<std::size_t>(step.devices));
    for (int other = 0; other < gpt::mesh::shape.devices(); ++other)
      if (step.color(gpt::mesh::shape, other) == step.color(gpt::mesh::shape, rank_))
        group[static_cast<std::size_t>(step.key(gpt::mesh::shape, other))] = other;
    work(group);
    board_.gate.arrive_and_wait();
  }
  void combine(const std::vector<int>& group, long from, number* out, long count, cfp::reduction by) const {
    std::copy_n(of(group[0]) + from, count, out);
    for (std::size_t m = 1; m < group.size(); ++m)
      for (long i = 0; i < count; ++i) {
        const number x = of(group[m])[from + i], y = out[i];
        out[i] = by == cfp::reduction::sum ? y + x : by == cfp::reduction::max ? std::max(y, x) : std::min(y, x);
      }
  }

  board& board_;
  int rank_;
};

// Calls f(machine) as every rank; whether all say that it went well.
template <class Number, class F>
bool on_every_rank(const F& f) {
  constexpr int ranks = gpt::mesh::shape.devices();
  board all(ranks);
  bool well[ranks]{};
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        thread_machine<Number> machine(all, rank);
        well[rank] = f(machine);
      });
  }
  return std::all_of(well, well + ranks, [](bool is) { return is; });
}

}  // namespace trainer

// threads [--gradients | --double] [--steps N]
int main(int count, char** arguments) {
  bool gradients = false, in_double = false;
  int steps = 4;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    if (word == "--gradients") gradients = true;
    else if (word == "--double") in_double = true;
    else if (word == "--steps" && i + 1 < count) steps = std::atoi(arguments[++i]);
    else return std::fprintf(stderr, "threads [--gradients | --double] [--steps N]\n"), 2;
  }
  const auto trains = [&](auto& machine) { return trainer::train(machine, steps), true; };
  const auto checks = [&](auto& machine) { return trainer::check_gradients(machine); };
  if (gradients) return trainer::on_every_rank<double>(checks) ? 0 : 1;
  return (in_double ? trainer::on_every_rank<double>(trains) : trainer::on_every_rank<float>(trains)) ? 0 : 1;
}
