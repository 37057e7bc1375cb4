// What operators compute, in jax.numpy: a function for each functor of the catalogue, of operands, scalars and places.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace cfp::inline v0_1::detail {

struct jax_operator {
  std::string_view label, text;
};

/// Those that move or add elements, products, slices, lookups and routines need none.
inline constexpr jax_operator jax_operators[] = {
    {"mul", "(x, y):\n    return x * y\n"},
    {"scaled", "(x, by):\n    return x * by\n"},
    {"relu", "(x):\n    return jnp.where(x <= 0, jnp.zeros_like(x), x)\n"},
    {"gelu", "(x):\n    return x * jax.nn.sigmoid(2 * 0.7978845608028654 * (x + 0.044715 * x * x * x))\n"},
    {"gelu_exact", "(x):\n    return 0.5 * x * (1 + jax.lax.erf(x * 0.7071067811865476))\n"},
    {"gated_silu", "(gate, up):\n    return gate * jax.nn.sigmoid(gate) * up\n"},
    {"gated_gelu",
     "(x, up):\n    return x * jax.nn.sigmoid(2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)) * up\n"},
    {"soft_cap", "(x, cap):\n    return cap * jnp.tanh(x / cap)\n"},
    {"plus_one", "(x):\n    return 1 + x\n"},
    {"norm_sum", "(x):\n    return x\n"},
    {"norm_square", "(x, total, per):\n    return (x - total * per) ** 2\n"},
    {"layer_norm",
     "(x, total, square, w, b, per, epsilon):\n"
     "    return (x - total * per) * (1 / jnp.sqrt(square * per + epsilon)) * w + b\n"},
    {"layer_norm_unbiased",
     "(x, total, square, w, per, epsilon):\n    return (x - total * per) * (1 / jnp.sqrt(square * per + epsilon)) * "
     "w\n"},
    {"rms_square", "(x):\n    return x * x\n"},
    {"rms_norm", "(x, square, w, per, epsilon):\n    return x * (1 / jnp.sqrt(square * per + epsilon)) * w\n"},
    {"masked_max", "(x, scale, reach, q, k):\n    return jnp.where(k <= q + reach, x * scale, -inf)\n"},
    {"masked_sum",
     "(x, most, scale, reach, q, k):\n    return jnp.exp(jnp.where(k <= q + reach, x * scale - most, -inf))\n"},
    {"masked_softmax",
     "(x, most, total, scale, reach, q, k):\n"
     "    return jnp.exp(jnp.where(k <= q + reach, x * scale - most, -inf)) * (1 / total)\n"},
    {"logits_max", "(x):\n    return x\n"},
    {"logits_sum", "(x, most):\n    return jnp.exp(x - most)\n"},
    {"softmax", "(x, most, total):\n    return jnp.exp(x - most) * (1 / total)\n"},
    {"cross_entropy", "(x, most, total, per):\n    return per * (jnp.log(total) + most - x)\n"},
    {"counted_targets", "(x, target):\n    return jnp.where(target < 0, 0.0, 1.0)\n"},
    {"mean_of", "(total, count):\n    return jnp.where(count > 0, total / jnp.maximum(count, 1), 0.0)\n"},
    {"rotary",
     "(x, log_base, per_pair, position, half, pair, out):\n"
     "    angle = position * jnp.exp(-log_base * per_pair * pair)\n"
     "    turned = jnp.where(half == out, jnp.cos(angle), jnp.where(half == 0, jnp.sin(angle), -jnp.sin(angle)))\n"
     "    return x * jnp.where((half > 1) | (out > 1), jnp.where(half == out, 1.0, 0.0), turned).astype(x.dtype)\n"},
    {"slowed_rotary",
     "(x, log_base, per_pair, slow, kept, by_pair, by_frequency, position, half, pair, out):\n"
     "    whole = jnp.exp(-log_base * per_pair * pair)\n"
     "    share = jnp.clip(kept + by_pair * pair + by_frequency * whole, 0, 1)\n"
     "    angle = position * whole * (slow + (1 - slow) * share)\n"
     "    turned = jnp.where(half == out, jnp.cos(angle), jnp.where(half == 0, jnp.sin(angle), -jnp.sin(angle)))\n"
     "    return x * jnp.where((half > 1) | (out > 1), jnp.where(half == out, 1.0, 0.0), turned).astype(x.dtype)\n"},
    {"rotary_pairs",
     "(x, log_base, per_pair, slow, kept, by_pair, by_frequency, last, position, half, pair, out):\n"
     "    whole = jnp.exp(-log_base * per_pair * pair)\n"
     "    share = jnp.clip(kept + by_pair * pair + by_frequency * whole, 0, 1)\n"
     "    angle = position * whole * (slow + (1 - slow) * share)\n"
     "    turned = jnp.where(half == out, jnp.cos(angle), jnp.where(half == 0, jnp.sin(angle), -jnp.sin(angle)))\n"
     "    return x * jnp.where(pair < last, turned, jnp.where(half == out, 1.0, 0.0)).astype(x.dtype)\n"},
    {"add_slopes",
     "(x, n, by, h, q, k):\n"
     "    slope = jnp.exp(-5.545177444479562 / n * jnp.where(h < n, h + 1, h - n + 0.5))\n"
     "    return x + (by * slope * (k - q)).astype(x.dtype)\n"},
    {"same_document", "(x, of_query, of_key):\n    return jnp.where(of_query == of_key, x, -inf)\n"},
    {"windowed", "(x, window, q, k):\n    return jnp.where(q - k < window, x, -inf)\n"},
    {"chosen_sum", "(gate, place):\n    return jnp.where(place != 0, gate, 0.0)\n"},
    {"dispatch", "(place, c):\n    return jnp.where(jnp.abs(place) == c + 1, 1.0, 0.0)\n"},
    {"combine", "(gate, place, total, c):\n    return jnp.where(jnp.abs(place) == c + 1, gate / total, 0.0)\n"},
    {"combine_gates", "(gate, place, c):\n    return jnp.where(jnp.abs(place) == c + 1, gate, 0.0)\n"},
    {"clamped", "(x, limit):\n    return jnp.clip(x, -limit, limit)\n"},
    {"tangent", "(x):\n    return jnp.tanh(x)\n"},
    {"first_replaced", "(x, first, s):\n    return jnp.where(s == 0, first, x)\n"},
    {"first_row", "(x, s):\n    return jnp.where(s == 0, x, jnp.zeros_like(x))\n"},
    {"first_choices", "(place):\n    return jnp.where(place > 0, 1.0, 0.0)\n"},
    {"seen_in_round",
     "(x, scale, round, length, window, p, q, k):\n"
     "    behind = round * length + q - k\n"
     "    return jnp.where((p >= round) & (behind >= 0) & (behind < window), x * scale, -inf)\n"},
    {"largest_score", "(x):\n    return x\n"},
    {"larger_score", "(x, y):\n    return jax.lax.stop_gradient(jnp.maximum(x, y))\n"},
    {"exponentials", "(x, most):\n    return jnp.exp(x - most)\n"},
    {"divided_rows", "(x, total):\n    return x / total\n"},
};

inline const jax_operator* find_jax_operator(std::string_view label) {
  const auto* const at = std::find_if(std::begin(jax_operators), std::end(jax_operators),
                                      [&](const jax_operator& o) { return o.label == label; });
  return at == std::end(jax_operators) ? nullptr : at;
}

/// What the functions are used with: factors of a rule are letters.
inline constexpr std::string_view jax_helpers = R"py(
def at(x, have, want):
    """x, whose dimensions are the letters `have`, with one for each letter of `want`, of size 1 where it has none."""
    x = jnp.transpose(x, [have.index(c) for c in want if c in have])
    return jnp.expand_dims(x, [i for i, c in enumerate(want) if c not in have])


def give(x, have, want, adds=jnp.sum):
    """x added up over the letters that `want` lacks, the others in its order."""
    lacks = tuple(i for i, c in enumerate(have) if c not in want)
    if lacks:
        x = adds(x, axis=lacks)
    have = [c for c in have if c in want]
    return jnp.transpose(x, [have.index(c) for c in want])


def place(letter, letters, size, first=0):
    """Where along a dimension each element stands in the whole tensor."""
    return jnp.reshape(first + jnp.arange(size), [size if c == letter else 1 for c in letters])


def pick(x, index, axis):
    """Of each row along an axis the element that the index says."""
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    hot = jnp.reshape(jnp.arange(x.shape[axis]), shape) == jnp.expand_dims(index, axis)
    return jnp.sum(jnp.where(hot, x, 0), axis)
)py";

/// What one position is given by another along an axis.
inline constexpr std::string_view jax_handed = R"py(
def handed(x, axis, step, around):
    """Of each position the one before it (behind, for -1); at the end zero, or that at the other end."""
    moved = jnp.roll(x, step, axis)
    if around:
        return moved
    shape = [x.shape[axis] if d == axis else 1 for d in range(x.ndim)]
    end = jnp.reshape(jnp.arange(x.shape[axis]) == (0 if step > 0 else x.shape[axis] - 1), shape)
    return jnp.where(end, jnp.zeros_like(x), moved)

)py";

/// The elements that fall out are those of cfp's own runs: by the same counters.
inline constexpr std::string_view jax_dropout = R"py(
def wide_product(a, b):
    """High and low half of the product of two numbers of 32 bits."""
    al, ah, bl, bh = a & 0xFFFF, a >> 16, b & 0xFFFF, b >> 16
    middle = ah * bl + ((al * bl) >> 16)
    other = al * bh + (middle & 0xFFFF)
    return ah * bh + (middle >> 16) + (other >> 16), a * b


def dropout(x, share, which, seed, number):
    """Zeroes elements by Philox4x32-10 of their places, the number of the pass and the seed."""
    index = jnp.zeros((1,) * x.ndim, jnp.uint32)
    step = 1
    for d in reversed(range(x.ndim)):
        index = index + jax.lax.broadcasted_iota(jnp.uint32, x.shape, d) * jnp.uint32(step)
        step *= x.shape[d]
    c = [index // 4, jnp.zeros_like(index), jnp.full_like(index, number), jnp.full_like(index, which)]
    k = [jnp.uint32(seed), jnp.uint32(0)]
    for _ in range(10):
        high0, low0 = wide_product(jnp.uint32(0xD2511F53), c[0])
        high1, low1 = wide_product(jnp.uint32(0xCD9E8D57), c[2])
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [k[0] + jnp.uint32(0x9E3779B9), k[1] + jnp.uint32(0xBB67AE85)]
    word = jnp.where(index % 4 == 0, c[0], jnp.where(index % 4 == 1, c[1], jnp.where(index % 4 == 2, c[2], c[3])))
    return jnp.where(word >= jnp.uint32(int(share * 4294967296.0)), x / (1 - share), jnp.zeros_like(x))
)py";

inline constexpr std::string_view jax_queue_places = R"py(
def queue_places(gates, groups, tokens, experts, choices):
    """Place of a token in the queue of each expert it chose: positive for its first choice, negative for others."""
    x = jnp.reshape(jax.lax.stop_gradient(gates), (groups, tokens, experts))
    where, waiting = jnp.zeros_like(x), jnp.zeros((groups, 1, experts), x.dtype)
    for choice in range(choices):
        hot = jax.nn.one_hot(jnp.argmax(jnp.where(where == 0, x, -inf), -1), experts, dtype=x.dtype)
        places = hot * (waiting + jnp.cumsum(hot, 1))
        where, waiting = where + (places if choice == 0 else -places), waiting + jnp.sum(hot, 1, keepdims=True)
    return jnp.reshape(where, gates.shape)
)py";

}  // namespace cfp::detail
