// Code on a stack of its own that gives way and goes on: what a thread of a GPU is on a CPU.
#pragma once

#include <boost/context/fiber.hpp>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define CFP_SANITIZED_STACKS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CFP_SANITIZED_STACKS
#endif
#endif
#if defined(CFP_SANITIZED_STACKS)
#include <sanitizer/common_interface_defs.h>
#endif

namespace cfp::inline v0_1::emulated {

class fiber {
 public:
  struct stack {
    static constexpr std::size_t size = 128 << 10;
    std::unique_ptr<std::byte[]> owned{new std::byte[size]};
    std::byte* memory = owned.get();
  };
  /// Stacks of this thread: kept, as making them takes longer than most kernels.
  static std::vector<stack>& stacks(std::size_t least) {
    static thread_local std::vector<stack> kept;
    if (kept.size() < least) kept.resize(least);
    return kept;
  }

  fiber() = default;
  fiber(const fiber&) = delete;

  /// From the first `resume` on body() runs; it must not throw. The stack and this must stay where they are.
  template <class Body>
  void start(stack& on, Body body) {
    on_ = &on;
    code_ = context(std::allocator_arg, stack_of{&on}, [this, body = std::move(body)](context&& back) {
      arrive(nullptr);
      back_ = std::move(back);
      body();
      done_ = true;
      leave(true);
      return std::move(back_);
    });
  }

  bool done() const { return done_; }

  /// Goes on until it pauses or ends.
  void resume() {
#if defined(CFP_SANITIZED_STACKS)
    __sanitizer_start_switch_fiber(&kept_, on_->memory, stack::size);
    code_ = std::move(code_).resume();
    __sanitizer_finish_switch_fiber(kept_, nullptr, nullptr);
#else
    code_ = std::move(code_).resume();
#endif
  }

  /// On its own stack: gives way to who resumed it.
  void pause() {
    void* const kept = leave(false);
    back_ = std::move(back_).resume();
    arrive(kept);
  }

 private:
  using context = boost::context::fiber;
  struct stack_of {  // what Boost asks for one
    stack* of;
    boost::context::stack_context allocate() const {
      boost::context::stack_context out;
      out.size = stack::size;
      out.sp = of->memory + stack::size;
      return out;
    }
    void deallocate(boost::context::stack_context&) const noexcept {}
  };

  void arrive([[maybe_unused]] void* kept) {
#if defined(CFP_SANITIZED_STACKS)
    __sanitizer_finish_switch_fiber(kept, &main_stack_, &main_size_);
#endif
  }
  void* leave([[maybe_unused]] bool for_good) {
    void* kept = nullptr;
#if defined(CFP_SANITIZED_STACKS)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &kept, main_stack_, main_size_);
#endif
    return kept;
  }

  context code_, back_;
  stack* on_ = nullptr;
  void* kept_ = nullptr;  // a sanitizer's view of the stack that is left
  const void* main_stack_ = nullptr;
  std::size_t main_size_ = 0;
  bool done_ = false;
};

}  // namespace cfp::emulated
