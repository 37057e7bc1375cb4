// What communicators share, whatever carries their bytes: the call that members must agree on, how their data are combined, what is counted,
// and the errors of ranks.
#pragma once

#include <cfp/core/collective.hpp>
#include <cfp/op/bf16.hpp>
#include <cfp/op/fp16.hpp>

#include <array>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// What collectives can move; the reducing ones need numbers.
template <class T>
concept movable_element = std::is_trivially_copyable_v<T>;
template <class T>
concept reducible_element = std::is_arithmetic_v<T> || is_narrow<T>;

/// Thrown by a collective that cannot take place, on every rank that calls it.
struct communicator_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Calls made, and bytes a ring algorithm would send per device, indexed by `collective_kind`.
struct traffic {
  std::array<std::int64_t, 5> calls{}, bytes{};

  /// Counts a call among `members`, `given` its count in bytes: of the whole, of a member's part of it, or of what a member has for
  /// another. Returns the bytes sent.
  std::int64_t count(collective_kind kind, std::size_t given, std::size_t members) {
    std::size_t all = given;
    if (kind == collective_kind::all_gather || kind == collective_kind::reduce_scatter) all *= members;
    if (kind == collective_kind::all_to_all) all *= members * members;
    const std::int64_t sent = bytes_sent(kind, static_cast<long>(all), static_cast<long>(members));
    ++calls[static_cast<std::size_t>(kind)];
    bytes[static_cast<std::size_t>(kind)] += sent;
    return sent;
  }
};

/// What stopped one rank. A consequence is brief: it only says in which collective the first error met it.
struct rank_error {
  int rank = 0;
  std::string message;
  bool consequence = false;
};

/// One or more ranks failed. what() has a line for each, causes first.
class rank_failure : public std::runtime_error {
 public:
  explicit rank_failure(std::vector<rank_error> errors)
      : std::runtime_error(text(errors)),
        errors_(std::make_shared<const std::vector<rank_error>>(std::move(errors))) {}

  /// Each rank at most once: of threads in order of time, of processes causes first, then by rank.
  const std::vector<rank_error>& errors() const noexcept { return *errors_; }

 private:
  static std::string text(const std::vector<rank_error>& errors) {
    std::string s;
    for (const rank_error& e : errors) s += (s.empty() ? "" : "\n  then ") + e.message;
    return s;
  }

  std::shared_ptr<const std::vector<rank_error>> errors_;  // shared: copying an exception must not throw
};

/// Ranks in a mesh, row-major: the last axis varies fastest.
class rank_grid {
 public:
  static constexpr int whole = -1;  ///< in place of an axis: all ranks

  /// Throws std::invalid_argument for an axis smaller than 1.
  explicit rank_grid(std::vector<int> mesh) : mesh_(std::move(mesh)) {
    for (const int n : mesh_) {
      if (n < 1) throw std::invalid_argument("a mesh axis has at least 1 rank, got: " + std::to_string(n));
      size_ *= n;
    }
  }

  int size() const { return size_; }
  const std::vector<int>& mesh() const { return mesh_; }

  /// Coordinate of a rank on an axis; on `whole`, the rank itself.
  int coordinate(int rank, int axis) const {
    if (axis == whole) return rank;
    return rank / stride(axis) % mesh_[static_cast<std::size_t>(axis)];
  }

  /// The ranks that differ from one only on an axis, itself included, in order.
  std::vector<int> members(int rank, int axis) const {
    std::vector<int> out;
    const int apart = axis == whole ? 1 : stride(axis), n = axis == whole ? size_ : mesh_[static_cast<std::size_t>(axis)];
    for (int i = 0; i < n; ++i) out.push_back(rank + (i - coordinate(rank, axis)) * apart);
    return out;
  }

 private:
  int stride(int axis) const {
    int n = 1;
    for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < mesh_.size(); ++i) n *= mesh_[i];
    return n;
  }

  std::vector<int> mesh_;
  int size_ = 1;
};

/// What the function of a rank is given.
template <class World, class Communicator>
struct rank_context_of {
  int rank = 0;                           ///< in the world
  int size = 1;                           ///< of the world
  std::vector<int> coordinates;           ///< in the mesh, one per axis
  Communicator world;              ///< all ranks
  std::vector<Communicator> axes;  ///< per mesh axis, the ranks that differ only on it

  rank_context_of(World& shared, int this_rank)
      : rank(this_rank), size(shared.size()), world(shared, this_rank), shared_(&shared) {
    for (int axis = 0; axis < static_cast<int>(shared.mesh().size()); ++axis) {
      coordinates.push_back(shared.coordinate(rank, axis));
      axes.emplace_back(shared, rank, axis);
    }
  }

  /// Whether ranks share the memory of one process.
  static constexpr bool one_process = World::one_process;
  /// Whether this rank is the one that writes what its process keeps of a job: one in each process.
  bool leads() const { return !one_process || rank == 0; }

  /// Of a whole tensor that was zero every rank has written its pieces, no two the same one: makes it whole in every process.
  template <class T>
  void complete([[maybe_unused]] T* whole, [[maybe_unused]] std::size_t count) const {
    if constexpr (!one_process) world.all_reduce(whole, count, reduction::sum);
  }

  /// This rank ends with an error: no rank waits for it in a collective any more, nor does a stream of its own wait for others (between
  /// processes: as soon as these know of it).
  /// A `consequence` only says where the error of another rank met this one: "stopped in ...".
  void fail(const std::string& what, bool consequence = false) const { shared_->fail(rank, what, consequence); }

  /// Whether some rank is known to have failed. Waits for nothing; to be asked by whoever waits for something else than a collective.
  bool stopped() const { return shared_->stopped(); }

 private:
  World* shared_;
};

namespace detail {

inline constexpr std::size_t cache_line = 64;
inline constexpr int barrier_kind = 5;  // follows the collective kinds

/// One rank's view of a collective. The members of a group must make equal calls.
struct collective_call {
  int kind = barrier_kind;
  std::size_t count = 0;               ///< elements, per rank or pair as the collective counts them
  std::uint32_t bits = 0;              ///< of an element
  char type = ' ';                     ///< 'f'loat, 'i'nteger, 'u'nsigned or 'b'its
  reduction combine = reduction::sum;  ///< for all_reduce and reduce_scatter
  int root = -1;                       ///< for broadcast

  friend bool operator==(const collective_call&, const collective_call&) = default;

  std::string text() const {
    if (kind == barrier_kind) return "barrier";
    std::string s(collective_names[static_cast<std::size_t>(kind)]);
    return s + " of " + std::to_string(count) + (count == 1 ? " element" : " elements");
  }
  std::string details() const {
    constexpr const char* combines[] = {"sum", "max", "min"};
    const char* element = type == 'f' ? "float" : type == 'i' ? "int" : type == 'u' ? "uint" : "bits";
    std::string s = " (" + (element + std::to_string(bits));
    if (kind == static_cast<int>(collective_kind::broadcast)) s += ", root " + std::to_string(root);
    if (kind == static_cast<int>(collective_kind::all_reduce) ||
        kind == static_cast<int>(collective_kind::reduce_scatter))
      s += std::string(", ") + combines[static_cast<int>(combine)];
    return s + ")";
  }
};

template <class T>
constexpr collective_call call_of(collective_kind kind, std::size_t count, reduction combine, int root) {
  constexpr char integer = std::is_signed_v<T> ? 'i' : 'u';
  constexpr char type = std::is_floating_point_v<wide_t<T>> ? 'f' : std::is_integral_v<T> ? integer : 'b';
  return {static_cast<int>(kind), count, sizeof(T) * CHAR_BIT, type, combine, root};
}

inline std::string milliseconds(std::chrono::nanoseconds t) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(t).count()) + " ms";
}

/// What `fail` of a world records.
inline rank_error failure(int rank, const std::string& what, bool consequence) {
  return {rank, "rank " + std::to_string(rank) + (consequence ? " " : " failed: ") + what, consequence};
}

/// Fails a rank, and throws, if the root of its broadcast is none of the group's `size` ranks.
template <class World>
void check_root(World& world, int rank, int root, int size) {
  if (root >= 0 && root < size) return;
  const std::string message = "the root of a broadcast is a rank of the group, less than " + std::to_string(size) + ", got: " + std::to_string(root);
  world.fail(rank, message);
  throw communicator_error(message);
}

/// A NaN of any rank stays: a maximum that hides it would hide the mistake behind it.
template <reduction Op, class T>
constexpr T combine(T a, T b) {
  if constexpr (Op == reduction::sum) {
    return static_cast<T>(a + b);
  } else {
    bool keep = Op == reduction::max ? a > b : a < b;
    if constexpr (std::is_floating_point_v<T>) keep = static_cast<bool>(keep | (a != a));
    return keep ? a : b;
  }
}

/// folded[i] = the members' elements first + i, combined in the order of the members; `of_member(m)` is where those of one begin.
template <reduction Op, class T, class In>
inline void fold(const In& of_member, std::size_t members, std::size_t first, std::size_t length, wide_t<T>* folded) {
  using wide = wide_t<T>;
  const auto in = [&](std::size_t member) { return of_member(member) + first; };
  const T* const a = in(0);
  if (members == 1) {
    for (std::size_t i = 0; i < length; ++i) folded[i] = a[i];
    return;
  }
  const T* const b = in(1);
  for (std::size_t i = 0; i < length; ++i) folded[i] = combine<Op, wide>(a[i], b[i]);
  for (std::size_t member = 2; member < members; ++member) {
    const T* const c = in(member);
    for (std::size_t i = 0; i < length; ++i) folded[i] = combine<Op, wide>(folded[i], c[i]);
  }
}

/// Folds the elements from `first` on, a block at a time that stays in the first cache, and hands each to
/// store(block, offset, length). The block is local: it cannot overlap a buffer, so the loops vectorise, and
/// a result may replace an input.
template <reduction Op, class T, class In, class Store>
void fold_blocks(const In& in, std::size_t members, std::size_t first, std::size_t length, Store store) {
  constexpr std::size_t block = 2048 / sizeof(T);
  alignas(cache_line) wide_t<T> folded[block];
  const auto hand_over = [&](std::size_t at, std::size_t n) {
    if constexpr (std::is_same_v<T, wide_t<T>>) {
      store(folded, at, n);
    } else {
      alignas(cache_line) T narrow[block];
      for (std::size_t i = 0; i < n; ++i) narrow[i] = T(folded[i]);
      store(narrow, at, n);
    }
  };
  std::size_t done = 0;
  for (; done + block <= length; done += block) {  // a constant length: vectorised at -O2 too
    fold<Op, T>(in, members, first + done, block, folded);
    hand_over(done, block);
  }
  if (done == length) return;
  fold<Op, T>(in, members, first + done, length - done, folded);
  hand_over(done, length - done);
}

template <class T, class In, class Store>
void fold_blocks(reduction combine, const In& in, std::size_t members, std::size_t first, std::size_t length, Store store) {
  switch (combine) {
    case reduction::sum: return fold_blocks<reduction::sum, T>(in, members, first, length, store);
    case reduction::max: return fold_blocks<reduction::max, T>(in, members, first, length, store);
    case reduction::min: return fold_blocks<reduction::min, T>(in, members, first, length, store);
  }
}

}  // namespace detail

}  // namespace cfp
