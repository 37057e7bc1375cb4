// What is fused on a GPU: attention, products with what follows them, and the chains there are kernels for.
#pragma once

#include <cfp/runtime/cuda/bind_attention.hpp>
#include <cfp/runtime/cuda/bind_chain.hpp>
#include <cfp/runtime/cuda/kernels.hpp>
#include <cfp/runtime/matrix_product.hpp>

namespace cfp::inline v0_1::cuda {

/// Patterns, in the order in which they are tried, and what stands for each.
template <class T, class Queue>
class fusions {
 public:
  enum class kind { attention, product, chain };
  struct entry {
    kind what = kind::chain;
    const chain_functions<Queue>* chain = nullptr;  ///< also what follows a product; null: nothing but a bias
  };

  /// `k` must outlive this.
  explicit fusions(const kernels<T, Queue>& k) {
    if constexpr (sizeof(T) == 2)
      for (const bool backward : {true, false}) {
        fusion_pattern pattern{"attention", attention_parts(backward)};
        if (backward) pattern.second = 5, pattern.needs = {0, 1, ~1, ~2, ~4}, pattern.stores = {1, 2, 4, 6, 9, 10};
        else pattern.needs = {~1, ~2, ~4}, pattern.stores = {1, 2, 4};
        pattern.fits = [](const program& p, const graph& g, const fusion& f) { return bind_attention(p, g, f, 0).has_value(); };
        add(std::move(pattern), {kind::attention, nullptr});
      }
    for (const chain_functions<Queue>& c : k.chains())
      if (c.how == mapping::flat && c.info->steps.size() > 1 && c.info->steps[0].op == &info<bias_t>) add_product(&c);
    add_product(nullptr);
    for (const chain_functions<Queue>& c : k.chains()) {
      fusion_pattern pattern{c.info->steps[c.info->steps.size() - 1].op->label, parts_of(*c.info, 0)};
      pattern.fits = [&c](const program& p, const graph& g, const fusion& f) { return bind_chain(p, g, f, *c.info, c.how, 0).has_value(); };
      add(std::move(pattern), {kind::chain, &c});
    }
  }

  const std::vector<fusion_pattern>& patterns() const { return patterns_; }
  const entry& operator[](const fusion& f) const { return entries_[static_cast<std::size_t>(f.pattern)]; }

 private:
  void add(fusion_pattern pattern, entry e) {
    patterns_.push_back(std::move(pattern));
    entries_.push_back(e);
  }

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

  // A product, its bias, and what follows that: input 0 of the chain is the product. Operands of the product get numbers of their own.
  void add_product(const chain_functions<Queue>* chain) {
    constexpr int a = max_inputs, b = max_inputs + 1;
    // The product itself is not stored.
    fusion_pattern pattern{chain ? chain->info->steps[chain->info->steps.size() - 1].op->label : info<bias_t>.label, {{nullptr, {{a, b}, 2}}}};
    if (chain) {
      for (fusion_part& part : parts_of(*chain->info, 1)) {
        for (int& from : part.from)
          if (from == 0) from = ~0;
        pattern.parts.push_back(part);
      }
    } else {
      pattern.parts.push_back({&info<bias_t>, {{~0, 1}, 2}});
    }
    for (int k = 1; k < static_cast<int>(pattern.parts.size()); ++k) pattern.stores.push_back(k);
    pattern.fits = [chain](const program& p, const graph& g, const fusion& f) {
      const matrix_product m = as_matrices(bind_call(p, g, f.parts[0], 0));
      if (m.swapped || m.repeats() > 1) return false;
      if (!chain) return true;
      fusion rest = f;
      rest.first = 1;
      return bind_chain(p, g, rest, *chain->info, chain->how, 0).has_value();
    };
    add(std::move(pattern), {kind::product, chain});
  }

  std::vector<fusion_pattern> patterns_;
  std::vector<entry> entries_;
};

}  // namespace cfp::cuda
