// A sentence as a list of types, for compilers that print the names of types but no texts (clang, nvcc): words
// that are known by their name, others letter by letter with `_` between two of them. Types of a function's own are
// printed without what stands around them.
#pragma once

#include <cfp/core/text.hpp>

#include <utility>

// Known words: those of our sentences, and the names people give dimensions, axes and operators.
// clang-format off
#define CFP_WORDS(X) \
  X(minor) X(anything) X(anywhere) X(sent) X(send) X(sends) X(largest) X(logits_max) X(consecutive) X(complete) \
  X(alone) X(along) X(moves) X(moved) X(expert_dense) X(bfloat16) X(adds) X(add_up) X(again) X(type) X(cast) \
  X(theirs) X(capacity) X(slot) X(router) X(silu) X(swiglu) X(a) X(add) X(after) X(all) X(all_gather) X(all_reduce) \
  X(all_to_all) X(alike) X(already) X(an) X(and_) X(another) X(are) X(as) X(at) X(attention) X(axes) X(axis) X(b) \
  X(batch) X(be) X(before) X(between) X(bias) X(border) X(broadcast) X(buffer) X(but) X(by) X(bytes) X(c) X(called) \
  X(calls) X(cannot) X(carry) X(channels) X(column) X(columns) X(communication) X(completed) X(compound) X(d) \
  X(data) X(dense) X(device) X(devices) X(different) X(differently) X(dim) X(dimension) X(dimensions) X(divide) \
  X(do_) X(does) X(dropout) X(each) X(einsum) X(element) X(elements) X(else_) X(embedding) X(expected) X(expert) \
  X(experts) X(f) X(factor) X(factors) X(fewer) X(first) X(for_) X(found) X(from) X(g) X(gate) X(gelu) X(given) \
  X(gradient) X(group) X(groups) X(h) X(half) X(halo) X(has) X(have) X(head) X(heads) X(hidden) X(hold) X(holds) \
  X(i) X(if_) X(in) X(in_the_order) X(index) X(inner) X(instead) X(into) X(is) X(it) X(its) X(itself) X(j) X(k) \
  X(key) X(keys) X(kv_heads) X(l) X(layer) X(layer_norm) X(lead) X(leaves) X(less) X(linear) X(local) X(logits) \
  X(lookup) X(m) X(made) X(major) X(make) X(makes) X(maximum) X(mean) X(meant) X(memory) X(mend) X(merge_heads) \
  X(mesh) X(minimum) X(mlp) X(model) X(more) X(most) X(mul) X(multiple) X(must) X(n) X(name) X(named) X(names) \
  X(needs) X(neighbours) X(next) X(no) X(none) X(not_) X(nothing) X(o) X(of) X(one) X(only) X(operand) X(operands) \
  X(operator_) X(or_) X(order) X(other) X(others) X(out) X(over) X(owed) X(owes) X(p) X(part) X(partial) \
  X(partition) X(partitioned) X(parts) X(per) X(piece) X(pieces) X(pipeline) X(planned) X(position) X(positions) \
  X(possible) X(q) X(qkv) X(query) X(r) X(rank) X(read) X(reads) X(rearrange) X(reduce) X(reduce_scatter) \
  X(reduces) X(relu) X(renamed) X(replicated) X(result) X(residual) X(rms_norm) X(rope) X(rotary) X(rows) X(rule) \
  X(s) X(same) X(say) X(says) X(scanned) X(scores) X(seq) X(sequence) X(shard) X(size) X(sizes) X(slice) X(softmax) \
  X(split) X(split_heads) X(split_qkv) X(splits) X(stands) X(stay) X(step) X(steps) X(such) X(sum) X(sums) X(t) \
  X(table) X(take) X(takes) X(tensor) X(than) X(that) X(the) X(then) X(there) X(they) X(three) X(time) X(to) \
  X(tokens) X(twice) X(two) X(u) X(unlike) X(up) X(use) X(used) X(v) X(value) X(values) X(vocabulary) X(w) \
  X(weight) X(weighted_sum) X(what) X(where) X(which) X(whole) X(width) X(with) X(would) X(write) X(writes) \
  X(written) X(x) X(y) X(you) X(z) X(zero) X(A_) X(B_) X(C_) X(D_) X(E_) X(F_) X(G_) X(H_) X(I_) X(J_) X(K_) X(L_) \
  X(M_) X(N_) X(O_) X(P_) X(Q_) X(R_) X(S_) X(T_) X(U_) X(V_) X(W_) X(X_) X(Y_) X(Z_) X(e) X(can) X(convert) \
  X(converted) X(follow) X(follows) X(share) X(shared) X(whose) X(grad) X(stored) X(store) X(transposed) X(wider) \
  X(_) X(_0) X(_1) X(_2) X(_3) X(_4) X(_5) X(_6) X(_7) X(_8) X(_9) X(dot) X(equals) X(becomes)
// clang-format on

namespace cfp::inline v0_1 {

/// A sentence, word by word; without one there is nothing to say.
template <class... Word>
struct in_words {
  static constexpr bool silent = sizeof...(Word) == 0;
};

namespace detail {

#define CFP_SPELLING(word) #word,
inline constexpr std::string_view spellings[] = {CFP_WORDS(CFP_SPELLING)};
#undef CFP_SPELLING
inline constexpr int spelling_count = sizeof(spellings) / sizeof(spellings[0]);

template <int At, class Word>
struct numbered {};
template <class... Numbered>
struct vocabulary_of : Numbered... {};
template <class Word>
struct tag {
  using type = Word;
};
template <int At, class Word>
constexpr tag<Word> word_at(const numbered<At, Word>*);

template <class... Word>
struct words_in_order {
  template <int... At>
  static constexpr vocabulary_of<numbered<At, Word>...> number(std::integer_sequence<int, At...>) {
    return {};
  }
  using type = decltype(number(std::make_integer_sequence<int, sizeof...(Word)>{}));
};

struct end_of_words;

// A template, and asked for by something that depends on one: else nvcc writes the types out for its host compiler,
// which cannot see them.
template <class>
constexpr auto vocabulary() {
#define CFP_DECLARE(word) \
  struct word {};
#define CFP_NAME(word) word,
  CFP_WORDS(CFP_DECLARE)
  return words_in_order<CFP_WORDS(CFP_NAME) end_of_words>{};
#undef CFP_NAME
#undef CFP_DECLARE
}

// Words by their first letter, so that little is compared: compilers count the steps. Keywords stand with a `_` behind.
struct word_table {
  std::string_view word[spelling_count]{};
  short first[128]{}, next[spelling_count]{};

  constexpr word_table() {
    for (short& at : first) at = -1;
    for (int i = 0; i < spelling_count; ++i) {
      word[i] = spellings[i];
      if (word[i].size() > 1 && word[i][0] != '_' && word[i].back() == '_') word[i].remove_suffix(1);
      short& head = first[static_cast<int>(word[i][0])];
      next[i] = head;
      head = static_cast<short>(i);
    }
  }
};
inline constexpr word_table known_words;

// Its number, or -1.
constexpr int word_of(std::string_view word) {
  for (int i = known_words.first[static_cast<int>(word[0])]; i >= 0; i = known_words.next[i])
    if (same(known_words.word[i], word)) return i;
  return -1;
}

struct sentence_words {
  int at[sentence::capacity + 1]{};
  int count = 0;
  bool spelled = false;  // the last word, letter by letter

  constexpr void add(std::string_view word) {
    const int known = word_of(word);
    at[count++] = known < 0 ? word_of("_") : known;
  }
  constexpr void add_name(std::string_view name) {
    if (const int known = word_of(name); known >= 0) {
      at[count++] = known;
      spelled = false;
      return;
    }
    if (spelled) add("_");
    for (std::size_t i = 0; i < name.size(); ++i) {
      const char digit[2] = {'_', name[i]};
      const bool number = name[i] >= '0' && name[i] <= '9';
      add(number ? std::string_view(digit, 2) : name.substr(i, 1));
    }
    spelled = true;
  }
};

constexpr sentence_words words_of(std::string_view s) {
  sentence_words out;
  for (std::size_t at = 0; at < s.size();) {
    std::size_t end = at;
    while (end < s.size() && is_name_character(s[end])) ++end;
    if (end > at) out.add_name(s.substr(at, end - at));
    else if (s[at] == '-' && s.substr(at).starts_with("->")) out.add("becomes"), out.spelled = false;
    else if (s[at] == '=') out.add("equals"), out.spelled = false;
    else if (s[at] == '.' && at + 1 < s.size() && is_name_character(s[at + 1])) out.add("dot"), out.spelled = false;
    else if (s[at] == ':' && at + 1 < s.size() && is_name_character(s[at + 1])) out.add("over"), out.spelled = false;
    at = end > at ? end : at + 1;
  }
  return out;
}

template <lit Sentence>
struct always {
  using type = void;
};

template <lit Sentence>
struct spelled_out {
  static constexpr sentence_words words = words_of(Sentence.view());
  using known = typename decltype(vocabulary<typename always<Sentence>::type>())::type;
  template <int At>
  using word = typename decltype(word_at<At>(static_cast<const known*>(nullptr)))::type;
  template <int... Index>
  static in_words<word<words.at[Index]>...> in_order(std::integer_sequence<int, Index...>);
  using type = decltype(in_order(std::make_integer_sequence<int, words.count>{}));
};

}  // namespace detail

#undef CFP_WORDS

}  // namespace cfp
