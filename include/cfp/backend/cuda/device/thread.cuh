// A thread of a GPU, as kernels see it. A kernel is an object that holds its arguments, with
//
//   static constexpr int threads = 128;   // of a block
//   template <class Thread>
//   CFP_DEVICE void operator()(const Thread& t) const;
//
// and asks the thread it is given for all that only a GPU has: its place, what blocks share, shuffles, tensor cores.
// The tests give the same kernels threads of another kind, which a CPU runs one after another
// (backend/emulated/thread.hpp).
#pragma once

#include <cfp/backend/cuda/kernel/kernel.hpp>
#include <cfp/op/bf16.hpp>

#include <cub/block/block_reduce.cuh>
#include <cub/warp/warp_reduce.cuh>

#include <cstddef>
#include <cstdint>

namespace cfp::inline v0_1::cuda {

template <int Threads>
struct gpu_thread {
  static constexpr int threads = Threads;  ///< of a block, in one dimension

  CFP_DEVICE long block() const { return blockIdx.x; }
  CFP_DEVICE long blocks() const { return gridDim.x; }
  CFP_DEVICE int thread() const { return static_cast<int>(threadIdx.x); }
  CFP_DEVICE int lane() const { return static_cast<int>(threadIdx.x % warp_size); }
  CFP_DEVICE int warp() const { return static_cast<int>(threadIdx.x / warp_size); }

  /// All threads of the block, or of the warp, have come here, and what they wrote to memory is seen.
  CFP_DEVICE void sync() const { __syncthreads(); }
  CFP_DEVICE void sync_warp() const { __syncwarp(); }

  /// The memory the launch set aside for the block, aligned for anything.
  CFP_DEVICE std::byte* shared() const {
    extern __shared__ __align__(128) std::byte memory[];
    return memory;
  }

  /// What another lane of the warp has: of all lanes, 32 bits.
  template <class T>
  CFP_DEVICE T shuffle(T x, int from) const {
    return __shfl_sync(all_lanes, x, from);
  }
  template <class T>
  CFP_DEVICE T shuffle_xor(T x, int lanes) const {
    return __shfl_xor_sync(all_lanes, x, lanes);
  }

  /// The combined value of the warp's lanes, or of the block's threads, for all of them.
  template <reduction R>
  CFP_DEVICE float reduce_warp(float x) const {
    for (int n = warp_size / 2; n > 0; n /= 2) x = combine<R>(x, shuffle_xor(x, n));
    return x;
  }
  template <reduction R>
  CFP_DEVICE float reduce(float x) const {
    using block = cub::BlockReduce<float, Threads>;
    __shared__ typename block::TempStorage memory;
    __shared__ float all;
    const float sum = block(memory).Reduce(x, combiner<R>{});
    if (threadIdx.x == 0) all = sum;
    __syncthreads();
    const float out = all;
    __syncthreads();  // before the memory is used again
    return out;
  }

  /// Begins to copy 16 bytes into shared memory; `commit` closes a batch of copies, and `wait<N>` waits for all but the
  /// last N batches (this thread's; a sync makes them seen by others).
  CFP_DEVICE void copy_async(void* to, const void* from) const {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address(to)), "l"(from) : "memory");
  }
  /// The same where the 16 bytes are `there`; else they become 0, and `from` is not read.
  CFP_DEVICE void copy_or_clear_async(void* to, const void* from, bool there) const {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address(to)), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
  }
  CFP_DEVICE void commit() const { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
  template <int N>
  CFP_DEVICE void wait() const {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
  }

  /// 2^x, to 2 units in the last place; 0 where that is no normal number.
  CFP_DEVICE float exp2(float x) const {
    float out;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(out) : "f"(x));
    return out;
  }

  /// Two numbers as `T`, rounded to nearest, ties to even, the first in the lower half: as a register of a matrix holds
  /// them.
  template <class T>
  CFP_DEVICE std::uint32_t narrow(float low, float high) const {
    static_assert(sizeof(T) == 2, "a register holds two numbers of 16 bits");
    std::uint32_t out;
    if constexpr (std::is_same_v<T, bf16>) asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(out) : "f"(high), "f"(low));
    else asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(out) : "f"(high), "f"(low));
    return out;
  }

  /// Four matrices of 8 x 8 numbers of 16 bits from shared memory: lane 8 i + r says where row r of matrix i begins (16
  /// bytes, aligned). Register i of lane l then holds elements 2 (l % 4) and the next of row l / 4 of matrix i;
  /// transposed, of its column l / 4.
  CFP_DEVICE void load_matrices(std::uint32_t (&out)[4], const void* row) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address(row))
                 : "memory");
  }
  CFP_DEVICE void load_matrices_transposed(std::uint32_t (&out)[4], const void* row) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address(row))
                 : "memory");
  }

  /// d (16 x 8) += a (16 x 16) b (16 x 8) on tensor cores, by the lanes of a warp. With g = lane / 4 and c = 2 (lane %
  /// 4), this lane holds, two neighbouring elements to a register, of a: rows g, g + 8, g, g + 8 at columns c, c, c +
  /// 8, c + 8; of b: rows c and c + 8 of column g (neighbours are rows); of d: rows g, g, g + 8, g + 8 at columns c, c
  /// + 1, c, c + 1. (PTX ISA, mma.m16n8k16.)
  template <class T>
  CFP_DEVICE void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) const {
    static_assert(sizeof(T) == 2, "tensor cores are used for numbers of 16 bits");
    if constexpr (std::is_same_v<T, bf16>)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
          "%2, %3};\n"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
          "%2, %3};\n"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }

 private:
  static constexpr unsigned all_lanes = 0xffffffffu;
  CFP_DEVICE static std::uint32_t address(const void* shared) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  }
};

/// What is launched: a block of threads runs the kernel.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads) run_kernel(const __grid_constant__ Kernel k) {
  k(gpu_thread<Kernel::threads>{});
}

}  // namespace cfp::cuda
