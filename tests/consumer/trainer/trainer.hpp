// The trainer: forward, backward and ZeRO-1 with AdamW, each device computing what layouts.hpp says that it holds. A
// result is typed by its operator, and becomes another layout by `convert` alone: what is owed cannot be forgotten.
#pragma once

#include "layouts.hpp"
#include "tensors.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace trainer {

// Operators that layouts.hpp has no need of.
inline constexpr cfp::op<"b s m -> s m"> over_batch;
inline constexpr cfp::op<"b s -> "> over_tokens;
inline constexpr cfp::op<"b s (h d) -> b h s d"> split_heads;
inline constexpr cfp::op<"b h q k, b h q d -> b h k d"> scores_weight;
inline constexpr struct target_logit_t : cfp::op<"b s v, b s -> b s; onehot v", target_logit_t> {
} target_logit;

using picked = cfp::held_as<"picked", cfp::result_t<target_logit, gpt::logits, gpt::tokens>>;
static_assert(cfp::owes<picked, gpt::per_token, cfp::all_reduce<"model">>);
using loss_parts = cfp::held_as<"loss", cfp::result_t<over_tokens, gpt::per_token>>;
static_assert(cfp::owes<loss_parts, cfp::complete_t<loss_parts>, cfp::all_reduce<"data">>);
using d_heads = cfp::result_t<split_heads, gpt::d_attended>;

template <class Machine>
class gpt2 {
 public:
  using N = typename Machine::number;
  template <class Layout>
  using held = tensor<Layout, N>;

  explicit gpt2(Machine& machine) : machine_(machine), rank_(machine.rank()) {
    gpt::adam::each([&]<class W>() {
      const bool gain = std::is_same_v<W, gpt::ln_1> || std::is_same_v<W, gpt::ln_2> || std::is_same_v<W, gpt::ln_f>;
      unsigned long seed = 0;
      for (const char c : W::name) seed = seed * 31 + static_cast<unsigned long>(c);
      fill(machine_, weight<W>().data(), held<W>::size, piece_of<W>(rank_), seed, gain ? N(1) : N(0), N(0.3));
    });
    share_ = convert<whole, share>(weights_);
  }

  /// The mean loss of the batch of a step; what backward needs is kept.
  N forward(int step) {
    constexpr long tokens = held<gpt::tokens>::size, words = gpt::wte::dims_type::value.sizes[0];
    tokens_ = machine_.template memory<int>(tokens), targets_ = machine_.template memory<int>(tokens);
    make_batch(machine_, tokens_.get(), targets_.get(), tokens, piece_of<gpt::tokens>(rank_),
               static_cast<unsigned long>(step), words);
    embed();
    attend();
    perceive();
    return lose();
  }

  /// Gradients of all weights into the flat buffer, each a part of the sum over data.
  void backward() {
    held<gpt::stream> d = lose_back();
    d = perceive_back(d);
    d = attend_back(d);
    embed_back(d);
  }

  /// AdamW on the share of this device.
  void update(int step) {
    const auto gradient = convert<parts, share>(parts_);
    adam_step(machine_, gradient.data(), first_.data(), second_.data(), share_.data(), share_.size, step);
    weights_ = convert<share, whole>(share_);
  }

  /// On every device all of a weight, or of its completed gradient.
  template <class W>
  std::vector<N> all_of(bool gradient = false) {
    const held<whole> flat = gradient ? convert<share, whole>(convert<parts, share>(parts_)) : weights_;
    const auto all = convert<W, cfp::sharded<typename W::dims_type, gpt::mesh>>(place<W>(flat));
    return machine_.fetch(all.data(), all.size);
  }

  template <class W>
  void nudge(long element, N by) {
    trainer::nudge(machine_, weight<W>().data(), held<W>::size, piece_of<W>(rank_), element, by);
  }

 private:
  using parts = cfp::parts_t<gpt::adam>;
  using share = cfp::share_t<gpt::adam>;
  using whole = cfp::whole_t<gpt::adam>;
  static constexpr long width = gpt::ln_f::local()[0], rows = held<gpt::stream>::size / width;
  static constexpr long seq = gpt::gathered::local()[1], vocabulary = gpt::logits::local()[2];

  template <class Layout>
  held<Layout> make() const {
    return held<Layout>(machine_.template memory<N>(held<Layout>::size));
  }
  template <class From, class To>
  held<To> convert(const held<From>& x) const {
    return trainer::convert<From, To>(machine_, x);
  }
  template <class W, class Buffer>
  static held<W> place(const held<Buffer>& buffer) {
    return held<W>(std::shared_ptr<N>(buffer.memory, buffer.data() + gpt::adam::offset<W>));
  }
  template <class W>
  held<W> weight() const {
    return place<W>(weights_);
  }
  template <class W, class Gradient>
  void put(const held<Gradient>& gradient) {
    static_assert(gpt::adam::takes<W, Gradient>);
    copy(machine_, gradient.data(), place<W>(parts_).data(), gradient.size);
  }

  template <const auto& Op, class... In>
  held<cfp::result_t<Op, In...>> apply(const held<In>&... in) const {
    const auto out = make<cfp::result_t<Op, In...>>();
    const N* const operands[] = {in.data()..., nullptr};
    const loops nest = loops_of<std::remove_cvref_t<decltype(Op)>, In...>();
    sum_products(machine_, nest, operands[0], operands[1], out.data(), out.size);
    return out;
  }
  template <class W, class X>
  held<cfp::result_t<gpt::bias, X, W>> biased(const held<X>& x) const {
    add_rows(machine_, x.data(), weight<W>().data(), x.size, held<W>::size);
    return x;
  }
  held<gpt::stream> sum(const held<gpt::stream>& x, const held<gpt::stream>& y) const {
    const auto out = make<gpt::stream>();
    add(machine_, x.data(), y.data(), out.data(), out.size);
    return out;
  }
  template <class Gain, class Bias>
  held<gpt::gathered> normal(const held<gpt::stream>& x) const {
    const auto out = make<cfp::result_t<gpt::layer_norm, gpt::stream, Gain, Bias>>();
    normalise(machine_, x.data(), out.data(), rows, width);
    scale_and_shift(machine_, out.data(), weight<Gain>().data(), weight<Bias>().data(), out.size, width);
    return gather(out);
  }
  template <class From>
  held<gpt::gathered> gather(const held<From>& x) const {
    return convert<From, gpt::gathered>(x);
  }

  void embed() {
    const auto found = make<gpt::embedded>();
    look_up(machine_, weight<gpt::wte>().data(), tokens_.get(), found.data(), found.size, width, first_word(),
            gpt::wte::local()[0]);
    x0_ = convert<gpt::embedded, gpt::stream>(found);
    add_rows(machine_, x0_.data(), weight<gpt::wpe>().data(), x0_.size, held<gpt::wpe>::size);
  }
  void attend() {
    a1_ = normal<gpt::ln_1, gpt::ln_1_bias>(x0_);
    const auto qkv = biased<gpt::attn_bias>(apply<gpt::linear>(a1_, weight<gpt::attn>()));
    q_ = make<gpt::query>(), k_ = make<gpt::key>(), v_ = make<gpt::value>();
    int which = 0;
    for (N* one : {q_.data(), k_.data(), v_.data()})
      move_one_of_three(machine_, qkv.data(), one, which++, true, gpt::qkv::local());
    p_ = apply<gpt::scores>(q_, k_);
    causal_softmax(machine_, p_.data(), shrink(), p_.size / seq, seq, seq);
    attended_ = apply<gpt::merge_heads>(apply<gpt::weighted_sum>(p_, v_));
    const auto y = convert<gpt::projected, gpt::stream>(apply<gpt::linear>(attended_, weight<gpt::proj>()));
    x1_ = sum(x0_, biased<gpt::proj_bias>(y));
  }
  void perceive() {
    a2_ = normal<gpt::ln_2, gpt::ln_2_bias>(x1_);
    u_ = biased<gpt::up_bias>(apply<gpt::linear>(a2_, weight<gpt::up>()));
    h_ = make<gpt::hidden>();
    gelu(machine_, u_.data(), h_.data(), h_.size);
    const auto y = convert<gpt::lowered, gpt::stream>(apply<gpt::linear>(h_, weight<gpt::down>()));
    x2_ = sum(x1_, biased<gpt::down_bias>(y));
  }
  N lose() {
    constexpr long tokens = held<gpt::tokens>::size;
    a3_ = normal<gpt::ln_f, gpt::ln_f_bias>(x2_);
    logits_ = apply<gpt::dense>(a3_, weight<gpt::wte>());
    const auto most = make<gpt::largest>();
    largest_of(machine_, logits_.data(), most.data(), tokens, vocabulary);
    largest_ = convert<gpt::largest, gpt::per_token>(most);
    const auto some = make<gpt::total>();
    sum_of_exponentials(machine_, logits_.data(), largest_.data(), some.data(), tokens, vocabulary);
    total_ = convert<gpt::total, gpt::per_token>(some);
    const auto mine = make<picked>();
    pick(machine_, logits_.data(), targets_.get(), mine.data(), tokens, vocabulary, first_word());
    const auto right = convert<picked, gpt::per_token>(mine);
    const auto losses = make<gpt::per_token>();
    cross_entropy(machine_, largest_.data(), total_.data(), right.data(), losses.data(), tokens, per_token());
    const auto loss = convert<loss_parts, cfp::complete_t<loss_parts>>(apply<over_tokens>(losses));
    return machine_.fetch(loss.data(), 1)[0];
  }

  // A layer norm's weights, and what flows on from it.
  template <class Gain, class Bias>
  held<gpt::stream> normal_back(const held<gpt::stream>& x, const held<gpt::stream>& d) {
    const auto unit = make<gpt::stream>(), dx = make<gpt::stream>();
    normalise(machine_, x.data(), unit.data(), rows, width);
    put<Gain>(convert<gpt::norm_gradient, gpt::norm_parts>(apply<gpt::layer_norm_weight>(d, unit)));
    put_stream_bias<Bias>(d);
    normalise_gradient(machine_, x.data(), d.data(), weight<Gain>().data(), dx.data(), rows, width);
    return dx;
  }
  template <class Bias>
  void put_stream_bias(const held<gpt::stream>& d) {
    put<Bias>(convert<gpt::stream_bias_gradient, gpt::norm_parts>(apply<gpt::bias_weight>(d)));
  }
  held<gpt::stream> lose_back() {
    const auto d = make<gpt::d_logits>();
    cross_entropy_gradient(machine_, logits_.data(), largest_.data(), total_.data(), targets_.get(), d.data(), d.size,
                           vocabulary, first_word(), per_token());
    put<gpt::wte>(apply<gpt::dense_weight>(d, a3_));
    const auto back = convert<gpt::d_normal_f, gpt::stream>(apply<gpt::dense_input>(d, weight<gpt::wte>()));
    return normal_back<gpt::ln_f, gpt::ln_f_bias>(x2_, back);
  }
  held<gpt::stream> perceive_back(const held<gpt::stream>& d) {
    put_stream_bias<gpt::down_bias>(d);
    const auto all = gather(d);
    put<gpt::down>(apply<gpt::linear_weight>(h_, all));
    const held<gpt::d_hidden> dh = apply<gpt::linear_input>(all, weight<gpt::down>());
    const auto du = make<gpt::d_hidden>();
    gelu_gradient(machine_, u_.data(), dh.data(), du.data(), du.size);
    put<gpt::up>(apply<gpt::linear_weight>(a2_, du));
    put<gpt::up_bias>(apply<gpt::bias_weight>(du));
    const auto back = convert<gpt::d_normal_2, gpt::stream>(apply<gpt::linear_input>(du, weight<gpt::up>()));
    return sum(d, normal_back<gpt::ln_2, gpt::ln_2_bias>(x1_, back));
  }
  held<gpt::stream> attend_back(const held<gpt::stream>& d) {
    put_stream_bias<gpt::proj_bias>(d);
    const auto all = gather(d);
    put<gpt::proj>(apply<gpt::linear_weight>(attended_, all));
    const held<d_heads> dy = apply<split_heads>(apply<gpt::linear_input>(all, weight<gpt::proj>()));
    const held<gpt::weights> ds = apply<gpt::scores>(dy, v_);
    const auto dv = apply<scores_weight>(p_, dy);
    softmax_gradient(machine_, p_.data(), ds.data(), shrink(), ds.size / seq, seq);
    const auto dq = apply<gpt::weighted_sum>(ds, k_);
    const auto dk = apply<scores_weight>(ds, q_);
    const auto dqkv = make<gpt::qkv>();
    int which = 0;
    for (N* one : {dq.data(), dk.data(), dv.data()})
      move_one_of_three(machine_, dqkv.data(), one, which++, false, gpt::qkv::local());
    put<gpt::attn>(apply<gpt::linear_weight>(a1_, dqkv));
    put<gpt::attn_bias>(apply<gpt::bias_weight>(dqkv));
    const auto back = convert<gpt::d_normal_1, gpt::stream>(apply<gpt::linear_input>(dqkv, weight<gpt::attn>()));
    return sum(d, normal_back<gpt::ln_1, gpt::ln_1_bias>(x0_, back));
  }
  void embed_back(const held<gpt::stream>& d) {
    put<gpt::wpe>(apply<over_batch>(d));
    const auto all = gather(d);
    const auto table = place<gpt::wte>(parts_);  // the head's part is there
    add_look_up_gradient(machine_, all.data(), tokens_.get(), table.data(), table.size, width, first_word(),
                         held<gpt::tokens>::size);
  }

  long first_word() const { return piece_of<gpt::wte>(rank_).first[0]; }
  static N shrink() { return 1 / std::sqrt(N(gpt::query::local()[3])); }  // of scores
  static N per_token() { return 1 / N(cfp::elements(gpt::tokens::dims_type::value.sizes)); }

  Machine& machine_;
  int rank_;
  held<whole> weights_ = make<whole>();
  held<parts> parts_ = make<parts>();
  held<share> share_, first_ = make<share>(), second_ = make<share>();
  std::shared_ptr<int> tokens_, targets_;
  held<gpt::stream> x0_, x1_, x2_;  // before attention, between, and behind the perceptron
  held<gpt::gathered> a1_, a2_, a3_;
  held<gpt::query> q_;
  held<gpt::key> k_;
  held<gpt::value> v_;
  held<gpt::weights> p_;
  held<gpt::attended> attended_;
  held<gpt::hidden> u_, h_;
  held<gpt::logits> logits_;
  held<gpt::per_token> largest_, total_;
};

/// Trains and prints: the loss of every step, and of every weight what it is, wherever its pieces were.
template <class Machine>
void train(Machine& machine, int steps) {
  gpt2<Machine> model(machine);
  const bool speaks = machine.rank() == 0;
  for (int step = 1; step <= steps; ++step) {
    const double loss = static_cast<double>(model.forward(step));
    model.backward();
    model.update(step);
    if (speaks) std::printf("step %d loss %.9g\n", step, loss);
  }
  gpt::adam::each([&]<class W>() {
    double size = 0, places = 0;
    long at = 0;
    for (const auto w : model.template all_of<W>()) {
      size += std::abs(static_cast<double>(w));
      places += std::abs(static_cast<double>(w) - noise(0, at++));
    }
    if (speaks) std::printf("weights %s %.9g %.9g\n", W::text.characters, size, places);
  });
}

/// Compares gradients with differences of the loss, of the fourth order: of every weight the largest and a few others.
template <class Machine>
bool check_gradients(Machine& machine) {
  using N = typename Machine::number;
  gpt2<Machine> model(machine);
  model.forward(1);
  model.backward();
  double worst = 0;
  gpt::adam::each([&]<class W>() {
    const std::vector<N> gradient = model.template all_of<W>(true);
    const auto smaller = [](N a, N b) { return std::abs(a) < std::abs(b); };
    std::vector<long> elements{std::max_element(gradient.begin(), gradient.end(), smaller) - gradient.begin()};
    for (long n = 0; n < 4; ++n)
      elements.push_back(static_cast<long>(std::abs(noise(1, n)) * static_cast<double>(gradient.size())));
    for (const long element : elements) {
      const auto loss_at = [&](N by) {
        model.template nudge<W>(element, by);
        const N loss = model.forward(1);
        model.template nudge<W>(element, -by);
        return loss;
      };
      const N own = gradient[static_cast<std::size_t>(element)], h = N(1e-3);
      const N found = (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12 * h);
      // Where a gradient is next to nothing, what counts is the rounding of the loss.
      worst = std::max(worst, static_cast<double>(std::abs(found - own) / std::max(std::abs(own), N(1e-4))));
      if (machine.rank() == 0)
        std::printf("gradient %s %ld %.9g\n", W::text.characters, element, static_cast<double>(own));
    }
  });
  if (machine.rank() == 0) std::printf("differences of the loss say the same within %.1e\n", worst);
  return worst < 1e-6;
}

}  // namespace trainer
