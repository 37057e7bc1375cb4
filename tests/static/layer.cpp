// Whole layers planned by the compiler: what they communicate forward and backward stands here as facts.
#include <cfp/families/decoder_bases.hpp>
#include <cfp/families/decoder_layer.hpp>
#include <cfp/op/attention.hpp>
#include <cfp/op/normalization.hpp>
#include <cfp/op/softmax.hpp>
#include <cfp/program/layer.hpp>

using namespace cfp;

namespace {

using grid = mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
constexpr auto all_reduce = collective_kind::all_reduce;
constexpr auto all_gather = collective_kind::all_gather;
constexpr auto reduce_scatter = collective_kind::reduce_scatter;
constexpr auto all_to_all = collective_kind::all_to_all;

constexpr dimension batch{"batch", 8}, seq{"seq", 16}, width{"width", 64}, hidden{"hidden", 256};

constexpr tensor mlp(model& net) {
  const tensor x = net.activation("x", {batch, seq, width});
  const tensor h = gelu(linear(x, net.weight("up.weight", {width, hidden}, {})));
  return net.called("y", linear(h, net.weight("down.weight", {hidden, width}, {})));
}

// Column-then-row: one all-reduce forward, one backward; the weights' gradients are reduced over data.
using batch_over_data = given<"x", split<"batch", "data">>;
using result = given<"y", split<"batch", "data">>;
using megatron = layer<mlp, grid, batch_over_data, given<"up.weight", split<"hidden", "model">>,
                       given<"down.weight", split<"hidden", "model">>, result>;
static_assert(megatron::forward.size() == 1 && megatron::forward.count(all_reduce) == 1);
static_assert(megatron::backward.size() == 1 && megatron::backward.count(all_reduce) == 1);
static_assert(megatron::gradients.size() == 2 && megatron::gradients.count(all_reduce) == 2);
static_assert(megatron::forward.collectives[0].axis == "model" && megatron::gradients.collectives[0].axis == "data");
// Per device 2 (t-1)/t of the activation it holds: batch over data, all of seq and width.
static_assert(megatron::forward.bytes == 2 * 3 * (8 / 2 * 16 * 64 * 4) / 4);

// One weight is enough: the other follows.
using one_given = layer<mlp, grid, batch_over_data, given<"up.weight", split<"hidden", "model">>, result>;
static_assert(one_given::forward.size() == 1 && one_given::backward.size() == 1);
// Data parallel: only weight gradients.
using data_parallel = layer<mlp, grid, batch_over_data, result>;
static_assert(data_parallel::forward.size() == 0 && data_parallel::backward.size() == 0 &&
              data_parallel::gradients.count(all_reduce) == 2);

// A transformer block as it is trained (families/decoder_layer.hpp), heads and hidden over model: two all-reduces
// forward and two backward, of the whole residual each; volume 8 b s h (t-1)/t elements.
constexpr cfp::families::transformer config = [] {
  cfp::families::transformer t = cfp::families::gpt2();
  t.heads = 8, t.width = 64, t.batch = 8, t.sequence = 16, t.score_scale = 0.35;
  return t;
}();
constexpr dimension sequence{"sequence", 16}, embedding{"embedding", 64};
constexpr tensor block(model& net) {
  const tensor y =
      cfp::families::decoder_layer(net, net.activation("x", {batch, sequence, embedding}), config, "", 0, 0.004);
  net.scope("");
  return net.called("y", y);
}
using column_row =
    layer<block, grid, batch_over_data, given<"attn.c_attn.weight", split<"heads", "model">>,
          given<"attn.c_proj.weight", split<"heads", "model">>, given<"mlp.c_fc.weight", split<"hidden", "model">>,
          given<"mlp.c_proj.weight", split<"hidden", "model">>, result>;
static_assert(column_row::forward.size() == 2 && column_row::forward.count(all_reduce) == 2);
static_assert(column_row::backward.size() == 2 && column_row::backward.count(all_reduce) == 2);
static_assert(column_row::forward.bytes + column_row::backward.bytes == 4 * 8L * (8 / 2) * 16 * 64 * 3 / 4);
// Every weight and bias has a gradient to reduce over data, and nothing else.
static_assert(column_row::gradients.size() == 12 && column_row::gradients.count(all_reduce) == 12);
// Heads and hidden of the first weights are enough.
using half_given = layer<block, grid, batch_over_data, given<"attn.c_attn.weight", split<"heads", "model">>,
                         given<"mlp.c_fc.weight", split<"hidden", "model">>, result>;
static_assert(half_given::forward.bytes == column_row::forward.bytes && half_given::backward.size() == 2);
// Norms and residuals split over the sequence: every all-reduce becomes a gather and a scatter of the same bytes.
using by_sequence = given<"x", split<"batch", "data">, split<"sequence", "model">>;
using sequence_parallel =
    layer<block, grid, by_sequence, given<"ln_1.layer_norm", split<"batch", "data">>,
          given<"attn.c_attn.weight", split<"heads", "model">>, given<"ln_2.layer_norm", split<"batch", "data">>,
          given<"mlp.c_fc.weight", split<"hidden", "model">>,
          given<"y", split<"batch", "data">, split<"sequence", "model">>>;
static_assert(sequence_parallel::forward.count(all_gather) == 2 &&
              sequence_parallel::forward.count(reduce_scatter) == 2);
static_assert(sequence_parallel::backward.count(all_gather) == 2 &&
              sequence_parallel::backward.count(reduce_scatter) == 2);
static_assert(sequence_parallel::forward.size() == 4 && sequence_parallel::forward.bytes == column_row::forward.bytes);
static_assert(sequence_parallel::backward.size() == 4 &&
              sequence_parallel::backward.bytes == column_row::backward.bytes);

// GShard's mixture of experts: tokens are dispatched to experts and combined again by einsums; experts split over the
// axis that splits the groups of tokens. One all-to-all each way forward, and one each way backward.
constexpr op<"group token width, group token expert slot -> expert group slot width"> dispatch;
constexpr op<"expert group slot in, expert in out -> expert group slot out"> expert_linear;
constexpr op<"expert group slot width, group token expert slot -> group token width"> combine;

constexpr tensor experts(model& net) {
  const dimension group{"group", 8}, token{"token", 32}, expert{"expert", 4}, slot{"slot", 16};
  const tensor x = net.activation("x", {group, token, width});
  const tensor mask = net.input("mask", {group, token, expert, slot}, element::real, {});
  const tensor gates = net.activation("gates", {group, token, expert, slot});
  const tensor in = net.called("expert_in", dispatch(x, mask));
  const tensor h = gelu(expert_linear(in, net.weight("wi", {expert, width, hidden}, {})));
  const tensor out = net.called("expert_out", expert_linear(h, net.weight("wo", {expert, hidden, width}, {})));
  return net.called("y", combine(out, gates));
}
using devices = mesh<cfp::axis<"data", 4>>;
using expert_parallel =
    layer<experts, devices, given<"x", split<"group", "data">>, given<"expert_in", split<"expert", "data">>,
          given<"expert_out", split<"group", "data">>, given<"y", split<"group", "data">>>;
static_assert(expert_parallel::forward.size() == 2 && expert_parallel::forward.count(all_to_all) == 2);
static_assert(expert_parallel::backward.size() == 2 && expert_parallel::backward.count(all_to_all) == 2);
static_assert(expert_parallel::gradients.size() == 0);  // every expert's weights live on one device
static_assert(expert_parallel::forward.bytes == 2 * 3 * (8 * 4 * 16 * 64 * 4) / 16);
// Without experts split over devices, weights are replicated and their gradients reduced.
using replicated_experts =
    layer<experts, devices, given<"x", split<"group", "data">>, given<"y", split<"group", "data">>>;
static_assert(replicated_experts::forward.size() == 0 && replicated_experts::gradients.count(all_reduce) == 2);

// The gradient of a result comes as the result is given: what converts it goes backward, not forward.
constexpr tensor alone(model& net) { return net.called("y", gelu(net.activation("x", {batch, seq, width}))); }
using turned = layer<alone, grid, given<"x", split<"batch", "data">>, given<"y", split<"seq", "data">>>;
static_assert(turned::forward.size() == 1 && turned::forward.count(all_to_all) == 1);
static_assert(turned::backward.size() == 1 && turned::backward.count(all_to_all) == 1);
// What begins as parts of a sum has a complete gradient.
static_assert(layer<mlp, devices, given<"x", partial<"data">>, given<"up.weight", split<"hidden", "data">>>::backward
                  .size() == 1);

// What cannot be given is refused in words.
static_assert(why_not<mlp, grid, given<"x", split<"batch", "data">>, given<"x", split<"seq", "data">>> ==
              "x: is given twice");
static_assert(why_not<mlp, grid, given<"up.weight", partial<"data">>> ==
              "up.weight: weights and indices are not sums; they cannot be given as parts of one");

// Contradictions are told with both sources.
static_assert(why_not<mlp, grid, given<"x", split<"batch", "model">>, given<"up.weight", split<"hidden", "model">>> ==
              "up.linear (linear): axis 'model' is to split 'batch' as given for x, and 'hidden' as given for "
              "up.weight; give one "
              "of them otherwise, or read it through a copy that is given as the operator is to find it");

}  // namespace

int main() {}
