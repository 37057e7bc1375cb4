// The emulation itself: kernels with known results, and mistakes that it must find.
#include <cfp/backend/cuda/kernel/coder_kernels.hpp>
#include <cfp/backend/emulated/queue.hpp>
#include <cfp/backend/host/coder.hpp>

#include "../catch.hpp"

namespace emulated_block_cases {

using namespace cfp;

namespace {

constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

// out[i] = the block's sum of in, by shared memory and syncs.
struct block_sum {
  static constexpr int threads = 96;
  const float* in;
  float* out;
  bool forgets_sync = false;
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    auto* memory = reinterpret_cast<float*>(t.shared());
    memory[t.thread()] = in[t.block() * threads + t.thread()];
    if (!forgets_sync) t.sync();
    float sum = 0;
    for (int i = 0; i < threads; ++i) sum += memory[i];
    out[t.block() * threads + t.thread()] = sum;
  }
};

// One 16 x 8 product by each warp from row-major matrices a (16 x 16) and b (16 x 8), read by load_matrices.
template <class T>
struct small_product {
  static constexpr int threads = 32;
  const T* a;
  const T* b;
  float* out;
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    T* left = reinterpret_cast<T*>(t.shared());
    T* right = left + 256;
    const int lane = t.lane();
    t.copy_async(left + lane * 8, a + lane * 8);  // 256 numbers
    if (lane < 16) t.copy_async(right + lane * 8, b + lane * 8);
    t.commit();
    t.template wait<0>();
    t.sync_warp();
    std::uint32_t x[4], y[4];
    t.load_matrices(x, left + (lane % 16) * 16 + lane / 16 * 8);
    t.load_matrices_transposed(y, right + (lane % 16) * 8);  // the first two of its four are the rows of b
    float d[4] = {};
    const std::uint32_t columns[2] = {y[0], y[1]};
    t.template multiply_add<T>(d, x, columns);
    for (int i = 0; i < 4; ++i) out[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
  }
};

struct exchanges {
  static constexpr int threads = 64;
  float* out;
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const float x = static_cast<float>(t.thread());
    float* mine = out + t.thread() * 4;
    mine[0] = t.shuffle_xor(x, 5);
    mine[1] = t.shuffle(x, 3);
    mine[2] = t.template reduce_warp<reduction::max>(x);
    mine[3] = t.template reduce<reduction::sum>(x);
  }
};

struct mistaken {
  static constexpr int threads = 64;
  int kind;
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    if (kind == 0 && t.thread() < 5) t.sync();  // others end
    if (kind == 1) t.thread() < 32 ? t.sync() : (void)t.template reduce<reduction::sum>(1);
    if (kind == 2) t.copy_async(t.shared() + 16, t.shared());
    if (kind == 3 && t.thread() == 7) throw std::runtime_error("out of luck");
  }
};

// Pieces that are sent, added up, and what is left over.
template <class T>
struct sent_pieces {
  std::vector<std::byte> bytes;
  std::vector<T> sums, left_over;

  template <class Coder>
  sent_pieces(const Coder& by, compression form, const std::vector<T>& in, long piece, long pieces)
      : bytes(at_least(pieces * compressed_bytes(form, piece))), sums(at_least(piece)),
        left_over(at_least(piece * pieces)) {
    const auto count = static_cast<long>(in.size());
    for (int round = 0; round < 2; ++round)
      by.encode(form, in.data(), count, left_over.data(), piece, pieces, bytes.data());
    by.decode(form, bytes.data(), piece, 1, pieces, sums.data(), piece);
  }

 private:
  static std::size_t at_least(long n) { return static_cast<std::size_t>(n); }
};

template <class T>
void compare_coders(unsigned order) {
  const auto bits = [](const std::vector<T>& x) {
    const auto* const from = reinterpret_cast<const unsigned char*>(x.data());
    return std::vector<unsigned char>(from, from + x.size() * sizeof(T));
  };
  std::mt19937 random(7);
  const emulated::queue queue(order);
  for (const auto form : {compression::bfloat16, compression::blocks8, compression::largest})
    for (const long piece : {3l, 256l, 700l}) {
      std::vector<T> in(static_cast<std::size_t>(3 * piece - 1));
      for (T& x : in) x = T(static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0.013f);
      const sent_pieces<T> expected(host::coder(), form, in, piece, 3),
          found(cuda::coder<emulated::queue>(queue), form, in, piece, 3);
      INFO(name_of(form) << ", pieces of " << piece);
      CHECK(found.bytes == expected.bytes);
      CHECK(bits(found.sums) == bits(expected.sums));
      CHECK(bits(found.left_over) == bits(expected.left_over));
    }
}

}  // namespace

TEST_CASE("emulated threads: numbers are compressed as on the host, to the bit") {
  for (const unsigned order : {0u, 1u, 2u}) {
    compare_coders<float>(order);
    compare_coders<bf16>(order);
    compare_coders<fp16>(order);
  }
}

TEST_CASE("emulated threads: sums through shared memory, in any order") {
  std::vector<float> in(96 * 3), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 7);
  for (unsigned order = 0; order < 4; ++order) {
    emulated::launch(block_sum{in.data(), out.data()}, 3, 96 * 4, order);
    for (int b = 0; b < 3; ++b) {
      float sum = 0;
      for (int i = 0; i < 96; ++i) sum += in[at(b * 96 + i)];
      for (int i = 0; i < 96; ++i) CHECK(out[at(b * 96 + i)] == sum);
    }
  }
  emulated::launch(block_sum{in.data(), out.data(), true}, 1, 96 * 4);
  CHECK(std::isnan(out[0]));  // a missing sync reads what nothing wrote
}

TEST_CASE("emulated threads: shuffles and reductions") {
  std::vector<float> out(64 * 4);
  emulated::launch(exchanges{out.data()}, 1);
  for (int i = 0; i < 64; ++i) {
    CHECK(out[at(4 * i)] == static_cast<float>(i / 32 * 32 + (i % 32 ^ 5)));
    CHECK(out[at(4 * i + 1)] == static_cast<float>(i / 32 * 32 + 3));
    CHECK(out[at(4 * i + 2)] == static_cast<float>(i / 32 * 32 + 31));
    CHECK(out[at(4 * i + 3)] == 2016.0f);
  }
}

TEST_CASE("emulated threads: tensor cores multiply matrices") {
  alignas(16) bf16 a[256], b[128];
  float out[128];
  std::mt19937 random(3);
  for (bf16& x : a) x = bf16(static_cast<float>(random() % 17) - 8);
  for (bf16& x : b) x = bf16(static_cast<float>(random() % 17) - 8);
  emulated::launch(small_product<bf16>{a, b, out}, 1, (256 + 128) * 2, 1);
  for (int r = 0; r < 16; ++r)
    for (int c = 0; c < 8; ++c) {
      float sum = 0;
      for (int k = 0; k < 16; ++k) sum += static_cast<float>(a[r * 16 + k]) * static_cast<float>(b[k * 8 + c]);
      CHECK(out[r * 8 + c] == sum);
    }
}

TEST_CASE("emulated threads: mistakes are found") {
  CHECK_THROWS_WITH(emulated::launch(mistaken{0}, 1), "thread 0 waits in sync for threads that do not come");
  CHECK_THROWS_WITH(emulated::launch(mistaken{1}, 1), "thread 32 comes to reduce while others wait in sync");
  CHECK_THROWS_WITH(emulated::launch(mistaken{2}, 1, 16), "a place outside the block's shared memory of 16 bytes");
  CHECK_THROWS_WITH(emulated::launch(mistaken{3}, 1), "out of luck");
}

}  // namespace emulated_block_cases
