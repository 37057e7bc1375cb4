// What is fused on a GPU: attention, products with what follows them, and the chains there are kernels for. Known
// without any kernel, so that plans can be made where there is no GPU.
#pragma once

#include <cfp/backend/cuda/attention/bind_attention.hpp>
#include <cfp/backend/cuda/chain/bind_chain.hpp>
#include <cfp/backend/cuda/chain/chains.hpp>
#include <cfp/backend/number.hpp>
#include <cfp/op/optimizer.hpp>
#include <cfp/program/matrix_product.hpp>
#include <cfp/program/target.hpp>

namespace cfp::inline v0_1::cuda {

/// Patterns, in the order in which they are tried, and what stands for each.
class fusions {
 public:
  enum class kind { attention, product, product_and_sums, chain };
  struct entry {
    kind what = kind::chain;
    int chain = -1;  ///< number of the chain; of a product, of what follows it (-1: nothing but a bias)
  };

  /// `narrow`: numbers take 16 bits, for which there is attention in one kernel.
  explicit fusions(const std::vector<known_chain>& chains, bool narrow) {
    if (narrow)
      for (const bool backward : {true, false}) add_attention(backward);
    const auto number = [](std::size_t c) { return static_cast<int>(c); };
    for (std::size_t c = 0; c < chains.size(); ++c)
      if (follows_product(chains[c])) add_product(&chains[c], number(c));
    add_product(nullptr, -1);
    add_product_and_sums();
    for (std::size_t c = 0; c < chains.size(); ++c) {
      if (chains[c].info->steps.size() < 2) continue;
      const known_chain chain = chains[c];
      fusion_pattern pattern{chain.info->steps[chain.info->steps.size() - 1].op->label, parts_of(*chain.info, 0)};
      pattern.fits = [chain, width = narrow ? 8 : 4](const program& p, const graph& g, const fusion& f) {
        const std::optional<chain_call> bound = bind_chain(p, g, f, *chain.info, chain.how, 0);
        return bound &&
               (!chain.info->gathers() || (bound->length <= longest_gathered(width) && bound->length % width == 0));
      };
      add(std::move(pattern), {kind::chain, number(c)});
    }
  }

  const std::vector<fusion_pattern>& patterns() const { return patterns_; }
  /// What runs on many tensors at a time.
  const std::vector<same_pattern>& same() const { return same_; }
  /// Attention, whose rows may lie anywhere.
  static bool walks(const program& p, const graph& g, const instruction& i) {
    if (i.fusion < 0) return false;
    const fusion& f = p.fusions[static_cast<std::size_t>(i.fusion)];
    return f.label == "attention" && bind_attention(p, g, f, 0).has_value();
  }
  const entry& operator[](const fusion& f) const { return entries_[static_cast<std::size_t>(f.pattern)]; }

 private:
  void add(fusion_pattern pattern, entry e) {
    patterns_.push_back(std::move(pattern));
    entries_.push_back(e);
  }

  /// Whether a chain is one that a product's epilogue may do.
  static bool follows_product(const known_chain& c) {
    const op_info* const first = c.info->steps[0].op;
    return c.how == mapping::flat &&
           (first == &info<slope<gelu_t, 0>> || (first == &info<add_t> && c.info->steps.size() == 1) ||
            (first == &info<bias_t> && c.info->steps.size() > 1));
  }

  void add_attention(bool backward) {
    fusion_pattern pattern{"attention", attention_parts(backward)};
    if (backward) {
      pattern.second = 5;
      pattern.needs = {0, 1, ~1, ~2, ~4};
      pattern.stores = {1, 2, 4, 6, 9, 10};
    } else {
      pattern.needs = {~1, ~2, ~4};
      pattern.stores = {1, 2, 4};
    }
    pattern.fits = [](const program& p, const graph& g, const fusion& f) {
      return bind_attention(p, g, f, 0).has_value();
    };
    add(std::move(pattern), {kind::attention, -1});
  }

  // The gradient of a weight, and that of a bias, which sums what the product does.
  void add_product_and_sums() {
    fusion_pattern pattern{"linear gradients", {{&info<copy_t>, {{0}, 1}}, {nullptr, {{0, 1}, 2}, &keeps_columns}}};
    pattern.fits = [](const program& p, const graph& g, const fusion& f) {
      const rule &sums = g.at(f.parts[0].op).r, &product = g.at(f.parts[1].op).r;
      const cfp::pattern& shared = product.operands[0];
      if (sums.results[0].factors.size() == sums.operands[0].factors.size() ||
          sums.operands[0].factors.size() != shared.factors.size() ||
          p[f.parts[0].out[0]].type != p[f.parts[1].out[0]].type)
        return false;
      for (int d = 0; d < shared.factors.size(); ++d)
        if ((sums.results[0].dim_of(sums.operands[0].factors[d]) >= 0) !=
            (product.results[0].dim_of(shared.factors[d]) >= 0))
          return false;
      return as_matrices(bind_call(p, g, f.parts[1], 0)).repeats() == 1;
    };
    add(std::move(pattern), {kind::product_and_sums, -1});
  }
  static bool keeps_columns(const operation& o) { return o.r.results[0].dim_of(o.r.operands[0].factors.back()) >= 0; }

  // The steps of a chain as parts, after `before` others.
  static std::vector<fusion_part> parts_of(const chain_info& c, int before) {
    std::vector<fusion_part> out;
    for (const chain_step& s : c.steps) {
      fusion_part part{s.op, {}};
      for (const chain_source& x : s.sources) part.from.push(x.step ? ~(x.index + before) : x.index);
      out.push_back(part);
    }
    return out;
  }

  // A product, its bias, and what follows that: input 0 of the chain is the product. Operands of the product get
  // numbers of their own.
  void add_product(const known_chain* follows, int number) {
    constexpr int a = max_inputs, b = max_inputs + 1;
    const chain_info* const info_of_rest = follows ? follows->info : nullptr;
    const mapping how = follows ? follows->how : mapping::flat;
    fusion_pattern pattern{follows ? info_of_rest->steps[info_of_rest->steps.size() - 1].op->label : info<bias_t>.label,
                           {{nullptr, {{a, b}, 2}}}};  // the product itself is not stored
    if (follows) {
      for (fusion_part& part : parts_of(*info_of_rest, 1)) {
        for (int& from : part.from)
          if (from == 0) from = ~0;
        pattern.parts.push_back(part);
      }
    } else {
      pattern.parts.push_back({&info<bias_t>, {{~0, 1}, 2}});
    }
    for (int k = 1; k < static_cast<int>(pattern.parts.size()); ++k) pattern.stores.push_back(k);
    pattern.fits = [info_of_rest, how](const program& p, const graph& g, const fusion& f) {
      const matrix_product m = as_matrices(bind_call(p, g, f.parts[0], 0));
      if (m.swapped || m.repeats() > 1) return false;
      if (p[f.parts[0].out[0]].type != p[f.parts.back().out[0]].type) return false;
      if (info_of_rest == nullptr) return true;
      fusion rest = f;
      rest.first = 1;
      return bind_chain(p, g, rest, *info_of_rest, how, 0).has_value();
    };
    add(std::move(pattern), {kind::product, number});
  }

  static bool is_narrow(const program&, const graph&, const instruction& i) { return i.kind == instruction::narrow; }
  static bool is_update(const program&, const graph& g, const instruction& i) {
    return is_body(g, i, op_body::update) || is_body(g, i, op_body::accumulate);
  }
  static bool is_body(const graph& g, const instruction& i, op_body body) {
    return i.kind == instruction::compute && g.at(i.op).op->body == body;
  }
  static bool is_square(const program&, const graph& g, const instruction& i) {
    return i.kind == instruction::compute && g.at(i.op).op == &info<square_norm_t>;
  }
  static bool is_sum_of_numbers(const program& p, const graph& g, const instruction& i) {
    return i.kind == instruction::compute && g.at(i.op).op == &info<add_t> && g.at(i.op).r.factors.size() == 0 &&
           p[i.out[0]].type == element::wide;
  }

  std::vector<same_pattern> same_{{&is_narrow}, {&is_update}, {&is_square}, {&is_sum_of_numbers, true}};
  std::vector<fusion_pattern> patterns_;
  std::vector<entry> entries_;
};

/// What programs for GPUs are lowered for, whether there is one or not; the kernels are those of the catalogue.
inline const target& catalogue_target(number type) {
  static const fusions narrow(catalogue_chains(), true), full(catalogue_chains(), false);
  static const target of_narrow{2, &narrow.patterns(), &narrow.same(), &fusions::walks},
      of_full{4, &full.patterns(), &full.same(), &fusions::walks};
  return bytes_of(type) == 2 ? of_narrow : of_full;
}

}  // namespace cfp::cuda
