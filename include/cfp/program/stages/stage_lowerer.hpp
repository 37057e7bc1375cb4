// The program of one rank of a pipeline: its slots unrolled, and what it sends and receives between them.
#pragma once

#include <cfp/program/lowerer.hpp>
#include <cfp/program/stages/crossings.hpp>

#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class stage_lowerer {
 public:
  stage_lowerer(const graph& g, const mesh_shape& mesh, const sharding& plan, long real_bytes,
                known_conversions* conversions, int place)
      : l_{{g, mesh, plan, real_bytes, conversions}, false} {
    l_.out.mesh = mesh;
    l_.out.real_bytes = real_bytes;
    l_.out.place = place;
  }

  long real_bytes() const { return l_.real_bytes; }

  /// Of the operations it may lower, and another value it has to do with.
  void make_room(const std::vector<int>& operations, int passes, int more) {
    l_.make_room(operations, {{more}});
    const std::size_t places = l_.known_of.size();
    l_.shared.resize(places);
    for (std::size_t at = 0; at < places; ++at) {
      const value& v = l_.g[l_.value_at(at)];
      const bool once = v.role == value_role::weight || v.role == value_role::state || v.role == value_role::constant ||
                        v.role == value_role::accumulator;
      l_.shared[at].set = once || (v.producer >= 0 && l_.g.at(v.producer).when == phase::update);
    }
    l_.of_pass.assign(static_cast<std::size_t>(passes), std::vector<held_buffers::known>(places));
    turned_.assign(static_cast<std::size_t>(passes), false);
    for (const int o : operations)
      for (int k = 0; k < l_.g.at(o).results.size(); ++k)
        if (const int x = overwritten(l_.g.at(o), k); x >= 0) l_.of(l_.g.at(o).operands[x]).update = o;
  }

  /// From here on it is about a micro-batch, in forward or backward; `begins`: the first whose gradients are added up.
  void enter(int pass, bool forward, bool begins) {
    l_.pass = pass;
    l_.out.slots.push_back({static_cast<int>(l_.out.code.size()), pass, begins});
    l_.forward = forward;
    const bool turns = !forward && !turned_[static_cast<std::size_t>(pass)];
    turned_[static_cast<std::size_t>(pass)] = !forward || turned_[static_cast<std::size_t>(pass)];
    for (std::size_t at = 0; at < l_.known_of.size(); ++at)
      if (l_.is_shared(at) ? drops(at) : turns) l_.forget(at);
  }
  void enter_updates() {
    enter(0, false, false);
    l_.updates = true;
  }
  void run(int operation) {
    l_.operation_now = operation;
    l_.emit(operation);
  }

  /// To another place along the stages, in this form; `for_operation` is who reads it there.
  void send(int value, int pass, const partition& held, element type, int with, int for_operation) {
    l_.pass = pass;
    l_.operation_now = for_operation;
    instruction i;
    i.kind = instruction::send;
    i.op = for_operation;
    i.with = with;
    i.in.push(l_.get(value, held, type));
    l_.out.code.push_back(std::move(i));
  }
  int get(int value, const partition& held, element type) { return l_.get(value, held, type); }
  int receive(int value, int pass, const partition& held, element type, int with, int for_operation) {
    l_.pass = pass;
    const int b = receive_beside(value, held, type, with, for_operation);
    l_.of(value).held = {};  // of a sum its own part
    l_.of(value).received = true;
    return l_.keep(value, b);
  }
  /// What another rank has added up is added to what this one has.
  void add_up(int adds, const partition& held, element type, int with) {
    const operation& o = l_.g.at(adds);
    instruction i;
    i.op = adds;
    i.assigned = l_.plan.assigned[static_cast<std::size_t>(adds)];
    const int sum = l_.get(o.results[0], held, type);
    i.in.push(sum);
    i.in.push(receive_beside(o.results[0], held, type, with, adds));
    const int b = l_.allocate(o.results[0], held, l_.out[sum].type, false);
    l_.out[b].root = l_.out[sum].root;
    l_.out[b].persistent = l_.out[sum].persistent;
    i.out.push(b);
    l_.out.code.push_back(std::move(i));
  }
  void leave_loss(int buffer) { l_.out.loss = buffer; }

  program finish() {
    const int first = static_cast<int>(l_.before.size());
    for (instruction& i : l_.out.code) l_.before.push_back(std::move(i));
    l_.out.code = std::move(l_.before);
    for (program_slot& s : l_.out.slots) s.first += first;
    l_.out.passes = static_cast<int>(l_.of_pass.size());
    l_.out.end = static_cast<int>(l_.out.code.size());
    return std::move(l_.out);
  }

 private:
  // Weights that are gathered whenever a slot needs them.
  bool drops(std::size_t at) { return l_.is_gathered_anew(l_.value_at(at)); }

  int receive_beside(int value, const partition& held, element type, int with, int for_operation) {
    instruction i;
    i.kind = instruction::receive;
    i.op = for_operation;
    i.with = with;
    const int b = l_.allocate(value, held, stored(type, l_.real_bytes), false);
    i.out.push(b);
    l_.out.code.push_back(std::move(i));
    return b;
  }

  lowerer l_;
  std::vector<bool> turned_;  // per micro-batch: backward has begun
};

}  // namespace cfp::detail
