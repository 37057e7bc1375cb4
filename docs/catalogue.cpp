// Writes the catalogue page: every operator with its rule, formula, source, and what a split of each factor owes. What
// is owed is derived from the rule; formulas and sources are written here. `docs.catalogue` compares the page with what
// this prints.
#include <cfp/op/activation.hpp>
#include <cfp/op/attention.hpp>
#include <cfp/op/dropout.hpp>
#include <cfp/op/normalization.hpp>
#include <cfp/op/optimizer.hpp>
#include <cfp/op/rounds.hpp>
#include <cfp/op/routing.hpp>
#include <cfp/op/softmax.hpp>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

using namespace cfp;

namespace {

std::string shown(const factor& f) { return f.label.view().starts_with("..") ? "..." : std::string(f.label.view()); }

std::string list_of(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) out += (i == 0 ? "" : ", ") + words[i];
  return out;
}

// What the split of a factor means forward, and which operands' gradients it leaves as parts of sums.
std::string owed(const op_info& op, const rule& r, int f) {
  if (r.factors[f].whole) return "must stay whole";
  if (r.factors[f].scan) return "a carry from device to device";
  if (r.factors[f].window >= 0) return "a halo";
  std::string out;
  if (r.is_parallel(f)) out = "free";
  else if (op.index_operand >= 0 && r.factors[f].one_hot && r.is_reduction(f))
    out = "the result is a partial sum: rows that other devices hold count as zero";
  else if (r.is_reduction(f))
    out = std::string("the result is a partial ") + (r.combine == reduction::sum   ? "sum"
                                                     : r.combine == reduction::max ? "maximum"
                                                                                   : "minimum");
  else out = "some results are partial sums";
  std::vector<std::string> lacking;
  for (int i = 0; i < r.operands.size(); ++i)
    if (i != op.index_operand && r.operands[i].dim_of(f) < 0 && op.body != op_body::update && !op.statistic)
      lacking.push_back(std::to_string(i));
  if (!lacking.empty() && !r.is_reduction(f)) out += "; gradients of operand " + list_of(lacking) + " are partial sums";
  return out;
}

// `operands`: what each is, in the order of the rule and of a call.
template <class Op>
void entry(std::string_view operands, const char* formula, const char* source) {
  constexpr const op_info& op = info<Op>;
  const rule r = parse(op.rule, op.rule.find("...") == std::string_view::npos ? 0 : 1);
  if (std::count(operands.begin(), operands.end(), ',') + 1 != r.operands.size())
    throw std::logic_error(std::string(op.label) + " has other operands");
  std::printf("### %.*s\n\n`%.*s`\n\nOperands: %.*s.\n%s\n", static_cast<int>(op.label.size()), op.label.data(),
              static_cast<int>(op.rule.size()), op.rule.data(), static_cast<int>(operands.size()), operands.data(),
              formula);
  if (source[0] != '\0') std::printf("Source: %s.\n", source);
  if (op.scalars > 0) std::printf("Scalars: %d.", op.scalars);
  if (op.index_operand >= 0)
    std::printf("%sOperand %d holds 32-bit indices.", op.scalars > 0 ? " " : "", op.index_operand);
  if (op.scalars > 0 || op.index_operand >= 0) std::printf("\n");
  std::printf("%s\n\n| factor | a split of it |\n|---|---|\n",
              op.linear == linearity::all    ? "Parts of sums pass through it."
              : op.linear == linearity::each ? "Parts of a sum pass through it in one operand."
                                             : "Its operands must be complete.");
  for (int f = 0; f < r.factors.size(); ++f)
    std::printf("| `%s` | %s |\n", shown(r.factors[f]).c_str(), owed(op, r, f).c_str());
  std::printf("\n");
}

}  // namespace

int main() {
  std::printf(
      "# The operators\n\nWritten by `docs/catalogue.cpp`; the tables follow from the rules. Numbers are `float` or "
      "`double` on the host; `...` is any leading "
      "dimensions. Every operator is checked under every split against one rank, and its gradient against central "
      "differences (`runtime.operators`).\n\n");
  std::printf("## Products\n\n");
  entry<linear_t>("x, w", "y = x w.", "");
  entry<dense_t>("x, w", "y = x w^T, the weight as checkpoints of `torch.nn.Linear` and embedding tables hold it.", "");
  entry<expert_dense_t>("x, w", "y[e] = x[e] w[e]^T.", "");
  entry<scores_t>("queries, keys", "Products of queries and keys.", "Attention Is All You Need, arXiv 1706.03762");
  entry<weighted_sum_t>("weights, values", "Values weighted by the softmax of the scores.", "arXiv 1706.03762");
  entry<patch_dense_t>("patches, w", "Patches of images, their pixels times a weight for each.", "arXiv 2010.11929");
  entry<grouped_scores_t>("queries, keys", "The same with `group` queries to a head of keys.", "GQA, arXiv 2305.13245");
  entry<grouped_sum_t>("weights, values", "The same with `group` queries to a head of values.", "arXiv 2305.13245");
  entry<shared_scores_t>("queries, keys", "Products of queries and of keys that all heads share.",
                         "DeepSeek-V2, arXiv 2405.04434");
  std::printf("## Elementwise\n\n");
  entry<add_t>("x, y", "x + y.", "");
  entry<bias_t>("x, b", "x + b.", "");
  entry<add_rows_t>("x, t", "x + t, of a table without the batch.", "");
  entry<add_positions_t>("scores, t", "Scores plus a table of positions.", "T5, arXiv 1910.10683");
  entry<mul_t>("x, y", "x y.", "");
  entry<scaled_t>("x", "x times a number.", "");
  entry<gelu_t>("x", "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).", "GELU, arXiv 1606.08415, tanh form");
  entry<relu_t>("x", "max(x, 0).", "");
  entry<gated_silu_t>("gate, up", "gate * sigmoid(gate) * up.", "SwiGLU, arXiv 2002.05202");
  entry<gelu_exact_t>("x", "x/2 (1 + erf(x / sqrt 2)).", "GELU, arXiv 1606.08415");
  entry<gated_gelu_t>("gate, up", "gelu(gate) * up, in tanh form.", "GEGLU, arXiv 2002.05202");
  entry<soft_cap_t>("x", "cap tanh(x / cap). Scalar: cap.", "Gemma 2, arXiv 2408.00118");
  entry<plus_one_t>("x", "1 + x, of a norm's weight that is stored less one.", "");
  entry<clamped_t>("x", "min(max(x, -limit), limit). Scalar: limit.", "");
  entry<logistic_t>("x", "1 / (1 + exp(-x)).", "");
  entry<gated_rows_t>("x, gate", "A row times the logistic function of its gate, a dimension of size 1.",
                      "arXiv 2401.06066");
  entry<first_replaced_t>("x, v", "Rows of a sequence but for the first one, which is v.", "ViT, arXiv 2010.11929");
  entry<rotary_t>(
      "x",
      "Number p of `pair` and its partner in the other half turn by position * base^(-p/pair); where `half` "
      "is more than 2, numbers behind these stay. Scalars: log base, 1/pair.",
      "RoFormer, arXiv 2104.09864");
  entry<slowed_rotary_t>("x",
                         "The same of frequencies f that are slowed, to f (slow + (1 - slow) min(max(kept + by_pair p "
                         "+ by_frequency f, 0), 1)). Scalars: log base, 1/pair, slow, kept, by_pair, by_frequency.",
                         "YaRN, arXiv 2309.00071");
  entry<rotary_pairs_t>("x",
                        "Numbers 2p and 2p + 1 turn by position * base^(-p/turned), of the first `turned` pairs. "
                        "Scalars: log base, 1/turned, the four of `slowed_rotary`, turned.",
                        "arXiv 2104.09864");
  entry<add_slopes_t>(
      "scores",
      "Scores plus (k - q) times the slope of the head, 2^(-8(h + 1)/n) of the first n heads. Scalars: n, "
      "the largest power of two that is not above the number of heads; a factor of all slopes.",
      "ALiBi, arXiv 2108.12409");
  entry<windowed_t>("scores", "Scores where q - k is below the window, else -infinity. Scalar: window.",
                    "Longformer, arXiv 2004.05150");
  entry<same_document_t>("scores, the number of each query's document, and of each key's",
                         "Scores of keys of the query's document, else -infinity.", "");
  std::printf("## Movement\n\n");
  entry<copy_t>("x", "x.", "");
  entry<split_qkv_t>("x", "Query, key and value of a fused projection.", "");
  entry<split_qkv_by_head_t>("x", "The same where each head's three lie together.", "");
  entry<split_heads_t>("x", "Heads outside the sequence.", "");
  entry<merge_heads_t>("x", "Heads side by side.", "");
  entry<split_groups_t>("x", "Heads and groups outside the sequence.", "");
  entry<merge_groups_t>("x", "Heads and groups side by side.", "");
  entry<first_row_t>("x", "The first row of a sequence.", "ViT, arXiv 2010.11929");
  entry<lookup_t>("table, index", "y[..., m] = table[index[...], m].", "");
  entry<scatter_add_t>("gradient, index", "The gradient of `lookup`: adds rows where the indices say.", "");
  std::printf(
      "## Pieces of a sequence\n\nWhat is scanned is run on a split factor too: neighbours hand on their border.\n\n");
  entry<std::remove_const_t<decltype(from_before)>>(
      "x",
      "y[p] = x[p - 1], and 0 for the first piece: `from_before`. `from_behind` is x[p + 1]; `_around` goes on at "
      "the other end; `left_of` and `right_of` take the last dimension but one.",
      "halo exchange; ring attention, arXiv 2310.01889");
  entry<std::remove_const_t<decltype(summed_before)>>("x", "Sum of x over the pieces before (`summed_behind`: behind).",
                                                      "ZeCO, arXiv 2507.01004");
  entry<std::remove_const_t<decltype(state_before)>>(
      "x, kept", "y[p + 1] = kept[p] y[p] + x[p], y[0] = 0 (`state_behind`: from the last piece on).",
      "GLA, arXiv 2312.06635; ZeCO, arXiv 2507.01004");
  entry<piece_scores_t>("queries, keys", "Products of queries and keys within a piece.", "arXiv 2310.01889");
  entry<piece_sum_t>("weights, values", "Values of a piece, weighted.", "arXiv 2310.01889");
  entry<group_piece_scores_t>("queries, keys", "The same with `group` queries to a head of keys.", "arXiv 2305.13245");
  entry<group_piece_sum_t>("weights, values", "The same with `group` queries to a head of values.", "arXiv 2305.13245");
  entry<seen_in_round_t>(
      "scores",
      "scale * scores of the keys of the piece so many rounds before, -infinity where a query does not see the key. "
      "Scalars: scale, round, length of a piece, window.",
      "arXiv 2310.01889");
  entry<largest_score_t>("scores", "The largest score of a query.", "");
  entry<larger_score_t>("x, y", "max(x, y).", "");
  entry<exponentials_t>("scores, m", "exp(scores - m).", "online softmax, arXiv 1805.02867");
  entry<divided_rows_t>("x, sum", "x / sum, a number for each row.", "");
  entry<seen_before_t>("scores", "Scores of keys up to the query, else 0.", "linear attention, arXiv 2006.16236");
  entry<piece_state_t>("keys, values", "Sum of key times value over a piece.", "arXiv 2006.16236");
  entry<read_state_t>("queries, state", "Queries times the state before their piece.", "arXiv 2006.16236");
  std::printf("## Normalisation\n\n");
  entry<norm_sum_t>("x", "Sum of a row.", "");
  entry<norm_square_t>("x, norm_sum(x)", "Sum of squared distances of a row to its mean. Scalar: 1/width.", "");
  entry<layer_norm_t>("x, norm_sum(x), norm_square(x), w, b",
                      "(x - mean) / sqrt(variance + epsilon) * w + b. Scalars: 1/width, epsilon.",
                      "Layer Normalization, arXiv 1607.06450");
  entry<layer_norm_unbiased_t>("x, norm_sum(x), norm_square(x), w",
                               "(x - mean) / sqrt(variance + epsilon) * w. Scalars: 1/width, epsilon.",
                               "arXiv 1607.06450");
  entry<rms_square_t>("x", "Sum of squares of a row.", "");
  entry<rms_norm_t>("x, rms_square(x), w", "x / sqrt(mean(x^2) + epsilon) * w. Scalars: 1/width, epsilon.",
                    "RMSNorm, arXiv 1910.07467");
  std::printf("## Softmax and loss\n\n");
  entry<masked_max_t>("scores",
                      "Largest scaled score of a query among the keys it sees (k <= q + reach). Scalars: scale, reach.",
                      "arXiv 1706.03762");
  entry<masked_sum_t>("scores, masked_max", "Sum of exp(scale x - max) over those keys.", "");
  entry<masked_softmax_t>("scores, masked_max, masked_sum", "exp(scale x - max) / sum over those keys, zero elsewhere.",
                          "");
  entry<logits_max_t>("x", "Largest number of a row.", "");
  entry<logits_sum_t>("x, logits_max", "Sum of exp(x - max) of a row.", "");
  entry<softmax_t>("x, logits_max, logits_sum", "exp(x - max) / sum.", "");
  entry<cross_entropy_t>("x, target, logits_max, logits_sum",
                         "Sum over rows of (log sum + max - x[target]) times the scalar 1/rows. A row whose target is "
                         "below 0 has no part in it and no gradient.",
                         "");
  entry<counted_targets_t>(
      "logits_sum, target",
      "How many targets are not below 0: `mean_cross_entropy` divides by it where targets may be `ignored_target`.",
      "");
  entry<mean_of_t>("sum, count", "sum / count, 0 where nothing was counted.", "");
  std::printf("## Mixture of experts\n\n");
  entry<queue_places_t>("gates",
                        "Place of a token in the queue of each expert it chose: positive for its first choice, "
                        "negative for later ones. Scalar: choices per token.",
                        "GShard, arXiv 2006.16668");
  entry<chosen_sum_t>("gates, queue_places", "Sum of a token's gates over the experts it chose.", "");
  entry<dispatch_t>("queue_places", "One where a token holds a place of an expert.", "arXiv 2006.16668");
  entry<combine_t>("gates, queue_places, chosen_sum", "dispatch * gate / chosen_sum.", "arXiv 2006.16668");
  entry<combine_gates_t>("gates, queue_places", "dispatch * gate.", "");
  entry<set_max_t>("gates", "The largest gate of each set of experts.", "DeepSeek-V2, arXiv 2405.04434");
  entry<set_second_t>("gates, set_max", "The largest gate of each set below that.", "DeepSeek-V3, arXiv 2412.19437");
  entry<of_chosen_sets_t>("gates, queue_places of sets", "Gates of sets that were chosen, else -infinity.",
                          "arXiv 2405.04434");
  entry<to_experts_t>("dispatch, tokens", "Tokens to the places they hold.", "arXiv 2006.16668");
  entry<from_experts_t>("combine, answers", "Answers back to the tokens.", "arXiv 2006.16668");
  entry<first_choices_t>("queue_places", "Tokens of a group whose first choice an expert is.", "");
  entry<gate_mass_t>("gates", "Gates of a group summed over its tokens.", "");
  entry<imbalance_t>("first_choices, gate_mass", "Sum of first choices times gates: what the balancing loss scales.",
                     "arXiv 2006.16668");
  std::printf("## Training\n\n");
  entry<dropout_t>("x",
                   "x / (1 - share) where a random number of the element's place, the step and the seed says so, else "
                   "zero. Scalar: the share zeroed.",
                   "Philox4x32-10, Salmon et al. 2011");
  entry<accumulate_t>("sum, gradient",
                      "What earlier micro-batches of the step gave, plus the gradient; the first one replaces it.", "");
  entry<square_norm_t>("x", "Sum of x^2.", "");
  entry<clip_factor_t>("sum of squares", "min(1, most / sqrt x) of the sum of squares of all gradients. Scalar: most.",
                       "Pascanu et al., arXiv 1211.5063");
  entry<adamw_t>("w, gradient, m, v",
                 "m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w -= rate (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + "
                 "epsilon) + decay w). "
                 "g is multiplied by a fifth operand, clip_factor, where gradients are clipped; the rate rises over "
                 "the warm-up, then falls along half a cosine. "
                 "Scalars: rate, b1, b2, epsilon, decay, steps of warm-up, all steps, the last rate.",
                 "AdamW, arXiv 1711.05101");
}
