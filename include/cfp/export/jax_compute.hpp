// What an operator computes, as lines of Python: products by einsum, functors on elements that belong together, and
// what is looked up, moved or drawn.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/export/jax_operators.hpp>
#include <cfp/export/python_text.hpp>
#include <cfp/model/graph.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

class jax_compute {
 public:
  jax_compute(const graph& g, long real_bytes) : g_(g), real_bytes_(real_bytes) {}

  std::set<std::string> used;  ///< functors, by name
  bool draws = false;          ///< random numbers

  /// Lines that give an operation's results their names.
  std::vector<std::string> operator()(int o, const std::vector<std::string>& operands,
                                      const std::vector<std::string>& results) {
    lines_.clear();
    compute(o, operands, results);
    return lines_;
  }

 private:
  void line(const std::string& text) { lines_.push_back(text); }
  static std::string letters(const pattern& p) {
    std::string out;
    for (const signed char f : p.factors) out += static_cast<char>('a' + f);
    return out;
  }

  void compute(int o, const std::vector<std::string>& operands, const std::vector<std::string>& results) {
    const operation& op = g_.at(o);
    switch (op.op->body) {
      case op_body::product:
        return line(results[0] + " = jnp.einsum(\"" + letters(op.r.operands[0]) + "," + letters(op.r.operands[1]) +
                    "->" + letters(op.r.results[0]) + "\", " + operands[0] + ", " + operands[1] + precision() + ")");
      case op_body::unstack: return unstack(op, operands[0], results);
      case op_body::routine: return routine(o, operands[0], results[0]);
      case op_body::map: return map(op, operands, results[0]);
      case op_body::scan: return scan(op, operands[0], results[0]);
      default: throw unknown(op);
    }
  }
  // The position that an operator reads, of one that is cut by all its parts.
  static std::string position(const operation& op, int which, const std::string& all) {
    std::string out;
    long step = 1;
    for (int f = op.r.factors.size() - 1; f >= 0; --f) {
      if (op.r.coordinate_of(f) != which) continue;
      std::string part = "place(\"" + std::string(1, static_cast<char>('a' + f)) + "\", " + python_text(all) + ", " +
                         std::to_string(op.sizes[f]) +
                         (op.first_of(f) != 0 ? ", " + std::to_string(op.first_of(f)) : "") + ")";
      if (step > 1) part += " * " + std::to_string(step);
      out = part + (out.empty() ? "" : " + " + out);
      step *= op.sizes[f];
    }
    return out;
  }
  // Products add up in 32 bits, as ours do.
  std::string precision() const {
    return real_bytes_ < 4 ? ", preferred_element_type=WIDE" : ", precision=\"highest\"";
  }
  bad_input unknown(const operation& op) const {
    return bad_input("--to jax: of operator '" + std::string(op.op->label) + "' (" +
                     std::string(g_[op.results[0]].label.view()) +
                     ") no form in jax.numpy is known; the header (--save-header) has every operator");
  }

  void unstack(const operation& op, const std::string& x, const std::vector<std::string>& results) {
    const pattern& from = op.r.operands[0];
    int slice = -1;
    for (const signed char f : from.factors)
      if (op.r.results[0].dim_of(f) < 0) slice = slice < 0 ? f : throw unknown(op);
    const std::string have = letters(from);
    std::string left = have;
    std::erase(left, static_cast<char>('a' + slice));
    for (std::size_t k = 0; k < results.size(); ++k)
      line(results[k] + " = give(jnp.take(" + x + ", " + std::to_string(k) +
           ", axis=" + std::to_string(from.dim_of(slice)) + "), " + python_text(left) + ", " +
           python_text(letters(op.r.results[static_cast<int>(k)])) + ")");
  }

  void scan(const operation& op, const std::string& x, const std::string& result) {
    const handing& how = op.op->hands;
    if (how.sums) throw unknown(op);
    used.insert("handed");
    line(result + " = handed(" + x + ", " + std::to_string(op.r.operands[0].dim_of(op.r.scanned())) + ", " +
         std::to_string(how.step) + (how.around ? ", True)" : ", False)"));
  }

  void routine(int o, const std::string& x, const std::string& result) {
    const operation& op = g_.at(o);
    if (op.op->label == "dropout") {
      draws = true;
      const int which = op.slice_of >= 0 ? op.slice_of : o;
      return line(result + " = dropout(" + x + ", " + python_number(op.scalars[0]) + ", " + std::to_string(which) +
                  ", seed, number)");
    }
    if (op.op->label != "queue_places") throw unknown(op);
    used.insert("queue_places");
    const pattern& p = op.r.operands[0];
    long sizes[3] = {1, 1, 1};
    for (int d = 0; d < p.factors.size(); ++d) sizes[p.group[d]] *= op.sizes[p.factors[d]];
    line(result + " = queue_places(" + x + ", " + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + ", " +
         std::to_string(sizes[2]) + ", " + std::to_string(static_cast<long>(op.scalars[0])) + ")");
  }

  // A functor on elements that belong together, then added up over what the result lacks.
  void map(const operation& op, std::vector<std::string> operands, const std::string& result) {
    const rule& r = op.r;
    std::vector<std::string> have;
    for (const pattern& p : r.operands) have.push_back(letters(p));
    const std::string want = letters(r.results[0]), index = select(op, operands, have, result);
    if (index == "done") return;
    std::string all = want;
    for (const std::string& h : have)
      for (const char c : h)
        if (all.find(c) == std::string::npos) all += c;
    const auto aligned = [&](const std::string& x, const std::string& of) {
      return of == all ? x : "at(" + x + ", " + python_text(of) + ", " + python_text(all) + ")";
    };
    std::string arguments;
    for (std::size_t k = 0; k < operands.size(); ++k) arguments += (k > 0 ? ", " : "") + aligned(operands[k], have[k]);
    const bool moves = op.op->unit && operands.size() == 1, adds = op.op->unit && operands.size() == 2;
    std::string text = arguments;
    if (adds) text = aligned(operands[0], have[0]) + " + " + aligned(operands[1], have[1]);
    if (!moves && !adds) {
      if (find_jax_operator(op.op->label) == nullptr) throw unknown(op);
      used.insert(std::string(op.op->label));
      for (const double s : op.scalars) arguments += ", " + python_number(s);
      for (int k = 0; k < r.coordinates.size(); ++k) arguments += ", " + position(op, k, all);
      text = std::string(op.op->label) + "(" + arguments + ")";
    }
    if (!index.empty()) text = "jnp.where(" + index + " >= 0, " + text + ", 0)";
    if (all != want)
      text = "give(" + text + ", " + python_text(all) + ", " + python_text(want) +
             (r.combine == reduction::max   ? ", jnp.max"
              : r.combine == reduction::min ? ", jnp.min"
                                            : "") +
             ")";
    // What is only divided out again has no gradient.
    if (op.op->statistic && r.combine != reduction::sum) text = "jax.lax.stop_gradient(" + text + ")";
    line(result + " = " + text);
  }

  // Where an operand is an index into a dimension of the first one: that is looked up, and both are one operand less.
  // Returns what the index is then called by the letters of all, "done" where nothing is left to do.
  std::string select(const operation& op, std::vector<std::string>& operands, std::vector<std::string>& have,
                     const std::string& result) {
    int hot = -1;
    for (int f = 0; f < op.r.factors.size(); ++f)
      if (op.r.factors[f].one_hot) hot = hot < 0 ? f : throw unknown(op);
    if (hot < 0) return {};
    const char c = static_cast<char>('a' + hot);
    const std::string index = operands[1], of_index = have[1];
    const std::size_t axis = have[0].find(c);
    if (axis == std::string::npos) throw unknown(op);
    std::string left = have[0];
    left.erase(axis, 1);
    const bool apart =
        std::none_of(of_index.begin(), of_index.end(), [&](char l) { return left.find(l) != std::string::npos; });
    if (apart && op.op->unit) {
      const std::string found = have[0].substr(0, axis) + of_index + have[0].substr(axis + 1);
      line(result + " = give(jnp.take(" + operands[0] + ", " + index + ", axis=" + std::to_string(axis) +
           ", mode=\"clip\"), " + python_text(found) + ", " + python_text(letters(op.r.results[0])) + ")");
      return "done";
    }
    std::string aligned = index;
    if (of_index != left) aligned = "at(" + index + ", " + python_text(of_index) + ", " + python_text(left) + ")";
    operands[0] = "pick(" + operands[0] + ", " + aligned + ", " + std::to_string(axis) + ")";
    have[0] = left;
    operands.erase(operands.begin() + 1);
    have.erase(have.begin() + 1);
    return aligned;
  }

  const graph& g_;
  long real_bytes_;
  std::vector<std::string> lines_;
};

}  // namespace cfp::detail
