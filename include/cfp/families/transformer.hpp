// What a decoder is made of: one description for all public families, and the names of its parameters in their
// checkpoints.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace cfp::inline v0_1::families {

/// How a row is normalised.
enum class norm_kind : std::uint8_t {
  layer,           ///< less its mean, over its deviation; a weight and a bias
  layer_unbiased,  ///< the same with a weight alone
  rms,             ///< over the root of its mean square; a weight
  rms_plus_one,    ///< the same, with the weight stored less one
};

/// Where norms stand in a layer that adds attention and MLP, both f here, to x.
enum class layer_kind : std::uint8_t {
  norm_before,      ///< x + f(norm x), one behind the other
  norm_behind,      ///< x + norm f(x)
  norm_around,      ///< x + norm f(norm x)
  norm_after,       ///< norm (x + f(x))
  parallel,         ///< both of what the layer was given, each with a norm of its own
  parallel_shared,  ///< the same with one norm
};

enum class position_kind : std::uint8_t {
  learned,       ///< a table that is added to the words
  rotary,        ///< queries and keys turn, number p with number p + half
  rotary_pairs,  ///< the same, number 2p with number 2p + 1
  slopes,        ///< scores fall with distance (ALiBi)
};

enum class activation_kind : std::uint8_t { gelu, gelu_exact, relu, gated_silu, gated_gelu };

/// How queries, keys and values are projected.
enum class projection_kind : std::uint8_t {
  separate,
  joined,   ///< one weight, all queries, all keys, all values
  by_head,  ///< one weight, of each head its query, key and value
};

enum class query_norm_kind : std::uint8_t { none, of_head, whole };

/// How the frequencies of rotary positions are slowed.
enum class turn_scaling_kind : std::uint8_t {
  none,
  all,         ///< all of them
  wavelength,  ///< those that turn seldom in the length a model was first trained on, as Llama 3.1 has it
  ramp,        ///< the same by the numbers of pairs (YaRN, arXiv 2309.00071)
};
struct turn_scaling {
  turn_scaling_kind kind = turn_scaling_kind::none;
  double factor = 1;          ///< the slowest turn so many times as slowly
  double slow = 1, fast = 4;  ///< turns in the original length: what turns less is slowed by the factor, more not
  double original = 8192;     ///< that length
  double score_factor = 1;    ///< of scores, beside their scale
};

/// Attention whose keys and values are made of a few numbers of each token (`attention.hpp`).
struct latent_form {
  long keys = 0;                  ///< so many, for keys and values; 0: attention is of the usual kind
  long queries = 0;               ///< the same for queries; 0: they are made of the whole token
  long still = 128, turned = 64;  ///< numbers of each head's query and key that do not turn, and that do
  long values = 128;              ///< of its value
};

/// Images in the place of texts: squares of pixels, each a row of the sequence, behind a row that stands for the whole.
struct image_form {
  long size = 0;  ///< pixels of a side; 0: it is texts
  long patch = 16, channels = 3;

  constexpr long rows() const { return size / patch * (size / patch) + 1; }
  constexpr long numbers() const { return channels * patch * patch; }  ///< of a row
};

/// Names of parameters, without ".weight" and ".bias": those of a layer behind `layer` and its number.
struct weight_names {
  std::string_view words = "model.embed_tokens", positions{}, word_norm{}, layer = "model.layers.";
  std::string_view attention_norm = "input_layernorm", attention = "self_attn", query = "q_proj", key = "k_proj",
                   value = "v_proj", joined{}, out = "o_proj", query_norm = "q_norm", key_norm = "k_norm",
                   behind_attention{};
  std::string_view mlp_norm = "post_attention_layernorm", mlp = "mlp", gate = "gate_proj", up = "up_proj",
                   down = "down_proj", behind_mlp{};
  std::string_view last_norm = "model.norm", head = "lm_head", kinds{}, transform{}, transform_norm{}, first{};
};

/// A mixture of experts in the place of some layers' MLPs. Tokens are dispatched by GShard's einsums, so that shapes
/// are static: an expert takes tokens up to its capacity.
struct experts_form {
  long count = 0;  ///< of a layer; 0: no layer has any
  long choices = 2, hidden = 3072;
  double capacity_factor = 2.0;  ///< places per expert: choices * tokens of a group / experts, times this / choices
  double balance = 0.01;         ///< weight of the balancing loss; 0: there is none
  long group = 0;                ///< tokens routed together; a multiple of the sequence; 0: a sequence
  bool gated = false;            ///< SwiGLU experts instead of GELU
  long period = 1, first = 0;    ///< layers that have experts: every so many, from this one on
  bool apart = false;            ///< checkpoints have each expert by itself
  bool in_rows = false;          ///< or the rows of all in one tensor
  long dense_layers = 0;         ///< so many first layers have none

  bool logistic = false;    ///< gates are each expert's own, not shares of all
  bool corrected = false;   ///< chosen by gates and a number of each expert beside them that is not trained
  bool normalised = true;   ///< weights of answers: gates over the sum of those chosen, not as they are
  double scale = 1;         ///< of what the experts answer together
  long sets = 1, kept = 1;  ///< experts are in sets, of which a token chooses from so many
  bool best_two = false;    ///< a set is as good as its best two experts, not as its best

  long shared = 0;           ///< hidden numbers of an MLP that every token goes through beside; 0: there is none
  bool shared_gate = false;  ///< its answer times a logistic gate of the token

  std::string_view called = "block_sparse_moe", router = "gate", expert = "experts", gate = "w1", up = "w3",
                   down = "w2", beside = "shared_experts";

  constexpr bool in_layer(long l) const { return count > 0 && l >= dense_layers && l % period == first; }
};

/// A decoder with attention and an MLP, or experts, in each layer.
struct transformer {
  long layers = 12, heads = 12, width = 768, vocabulary = 50304, positions = 1024;
  long kv_heads = 0;  ///< heads of keys and values; 0: each query has its own
  long depth = 0;     ///< numbers of a head; 0: width / heads
  long hidden = 0;    ///< of the MLP; 0: 4 width

  norm_kind norm = norm_kind::layer;
  layer_kind layer = layer_kind::norm_before;
  position_kind position = position_kind::learned;
  activation_kind activation = activation_kind::gelu;
  projection_kind projection = projection_kind::separate;
  query_norm_kind query_norm = query_norm_kind::none;
  bool parts_joined = false;     ///< what is called "joined.part" is a part of what checkpoints have as "joined"
  bool joined_by_group = false;  ///< and there heads that share keys and values stand together
  bool in_out = false;           ///< weights are stored as (in, out), not (out, in)
  bool attention_bias = false;   ///< of queries, keys and values
  bool out_bias = false, mlp_bias = false, head_bias = false;
  bool tied = true;        ///< the head's weight is that of the words
  bool word_norm = false;  ///< words are normalised before the first layer

  double epsilon = 1e-5;                ///< of norms
  double rope = 10000;                  ///< the base of rotary positions
  long turned = 0;                      ///< numbers of a head that turn; 0: all
  long skipped_positions = 0;           ///< rows of a learned table before the first one's
  double score_scale = 0;               ///< of scores; 0: 1 / sqrt(depth)
  double score_cap = 0, logit_cap = 0;  ///< soft limits; 0: none
  double word_scale = 1, logit_scale = 1;
  double clip = 0;  ///< of projections to queries, keys and values: from -clip to clip; 0: none
  turn_scaling turns{};
  latent_form latent{};
  image_form image{};
  bool sees_ahead = false;      ///< every token sees all others: an encoder
  long token_kinds = 0;         ///< rows of a table that is added to the words, by the segment each is of; 0: none
  bool last_norm = true;        ///< behind the last layer
  bool head_transform = false;  ///< a dense layer, activation and norm before the head
  long window = 0;              ///< keys that a query sees, itself included; 0: all
  long window_period = 1, window_first = 0;  ///< layers that have a window: every so many, from this one on

  double deviation = 0.02;                                                    ///< of the initial weights
  double embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;  ///< shares of elements
  weight_names names{};
  experts_form experts{};

  long batch = 4, sequence = 128;
  bool folded = false;  ///< of many equal layers few are written (`repeat_layers`)
  long period = 1;      ///< layers are equal every so many
  long pieces = 0;      ///< of the sequence, in which attention is (`attention_in_pieces`); 0: all of it at once
  bool packed = false;  ///< rows are of several documents, whose tokens see only one another (`packed_rows`)
  bool ignored_targets = false;  ///< targets may be `ignored_target`, and then do not count

  constexpr long head_depth() const { return depth > 0 ? depth : width / heads; }
  constexpr long value_depth() const { return latent.keys > 0 ? latent.values : head_depth(); }
  constexpr bool is_turned() const {
    return position == position_kind::rotary || position == position_kind::rotary_pairs;
  }
  constexpr long inner() const { return hidden > 0 ? hidden : 4 * width; }
  constexpr bool gated() const {
    return activation == activation_kind::gated_silu || activation == activation_kind::gated_gelu;
  }
  constexpr bool has_window(long l) const {
    return window > 0 && window < sequence && l % window_period == window_first;
  }
};

}  // namespace cfp::families
