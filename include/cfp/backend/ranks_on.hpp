// A backend of one kind of device: each rank has one, made by the rank itself and kept from job to job.
#pragma once

#include <cfp/backend/engine.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

template <class Device>
struct held_device {
  std::shared_ptr<Device> held;
};

// A program keeps the device it was loaded on, whatever becomes of the rank.
template <device Device>
class held_program final : held_device<Device>, public engine<Device> {
 public:
  held_program(const program& p, const graph& g, const std::shared_ptr<Device>& on, std::uint64_t seed)
      : held_device<Device>{on}, engine<Device>(p, g, *on, seed) {}
};

}  // namespace detail

/// A Device here also has
///   parts                      type: what all ranks share (kernels, what they compute together), made once
///   Device(parts, context)     context of a rank: of a thread, of a process
///   context()                  the same again
///   counted(group), reset_counted()
///   use()                      see memory_use
template <device Device, class Context>
class rank_on final : public rank {
 public:
  rank_on(const typename Device::parts& shared, Context& context, const mesh_shape& of)
      : context_(context), mesh_(of), device_(std::make_shared<Device>(shared, context)) {}

  int number() const override { return context_.rank; }
  bool leads() const override { return context_.leads(); }
  std::unique_ptr<loaded_program> load(const program& p, const graph& g, std::uint64_t seed) override {
    check_mesh(p, mesh_);
    constexpr long bytes = sizeof(typename Device::number);
    if (p.real_bytes != bytes)
      throw bad_input("a program is lowered for numbers of " + std::to_string(p.real_bytes) +
                      " bytes, and those of these ranks have " + std::to_string(bytes) +
                      ": lower it for the ranks' own target, backend::lowered_for()");
    return std::make_unique<detail::held_program<Device>>(p, g, device_, seed);
  }
  void barrier() override { context_.world.barrier(); }
  void combine(std::span<double> x, reduction by) override { context_.world.all_reduce(x.data(), x.size(), by); }
  void agree(std::span<std::byte> x) override { context_.world.broadcast(x.data(), x.size(), 0); }
  void complete(const collected_tensor& whole) override {
    std::visit([&](const auto& x) { context_.complete(x.data(), x.size()); }, whole);
  }
  std::map<std::string, long> choices() const override {
    if constexpr (requires { device_->choices(); }) return device_->choices();
    else return {};
  }
  void choose([[maybe_unused]] const std::map<std::string, long>& all) override {
    if constexpr (requires { device_->choose(all); }) device_->choose(all);
  }
  std::vector<traffic> counted() const override {
    std::vector<traffic> out;
    for (int group = 0; group < context_.groups_and_pairs(); ++group) out.push_back(device_->counted(group));
    return out;
  }
  void reset_counted() override { device_->reset_counted(); }
  long bytes() const override { return device_->use().now; }
  long peak_bytes() const override { return device_->use().peak; }
  long total_bytes() const override {
    if constexpr (requires { device_->total_bytes(); }) return device_->total_bytes();
    else return 0;
  }
  long free_bytes() const override {
    if constexpr (requires { device_->free_bytes(); }) return device_->free_bytes();
    else return 0;
  }
  long beside_bytes([[maybe_unused]] const program& p, [[maybe_unused]] const graph& g) const override {
    if constexpr (requires { device_->beside_bytes(p, g, 0); }) return device_->beside_bytes(p, g, context_.rank);
    else return 0;
  }

 private:
  Context& context_;
  const mesh_shape& mesh_;  // of all ranks
  const std::shared_ptr<Device> device_;
};

inline std::vector<int> sizes(const mesh_shape& mesh) {
  std::vector<int> out;
  for (const mesh_axis& a : mesh.axes) out.push_back(a.size);
  return out;
}

/// `Pool` runs a function on every rank: `rank_pool`, `process_pool`. `Context` is what it gives them.
template <class Device, class Pool, class Context>
class ranks_on final : public backend {
 public:
  /// Throws bad_input for a mesh that the pool cannot have.
  ranks_on(const mesh_shape& mesh, number type, typename Device::parts shared, std::string description)
      : mesh_(mesh), type_(type), shared_(std::move(shared)), target_(shared_.lowered_for()),
        description_(std::move(description)), pool_(sizes(mesh)), ranks_(static_cast<std::size_t>(pool_.size())) {
    if (pool_.on_this_machine() == pool_.size()) target_.prices = &links_alike;
  }
  ranks_on(const ranks_on&) = delete;
  ~ranks_on() override { leave(); }

  void run(const std::function<void(rank&)>& job) override {
    try {
      pool_.run([&](Context& context) {
        auto& mine = ranks_[static_cast<std::size_t>(context.rank)];
        if (!mine) mine = std::make_unique<rank_on<Device, Context>>(shared_, context, mesh_);
        job(*mine);
      });
    } catch (const rank_failure&) {  // what a device was doing is not known
      leave();
      throw;
    }
  }

  void set_deadline(std::chrono::nanoseconds limit) override {
    pool_.set_deadline(limit);
    if constexpr (requires { shared_.set_deadline(limit); }) shared_.set_deadline(limit);
  }

  const mesh_shape& mesh() const override { return mesh_; }
  number type() const override { return type_; }
  const target& lowered_for() const override { return target_; }
  int on_this_machine() const override { return pool_.on_this_machine(); }
  bool is_first() const override { return pool_.is_first(); }
  std::string description() const override { return description_; }

  Pool& pool() { return pool_; }

 private:
  // Devices end where they were made, all ranks together.
  void leave() noexcept {
    try {
      pool_.run([&](Context& context) { ranks_[static_cast<std::size_t>(context.rank)].reset(); });
    } catch (const std::exception&) {  // a pool that has failed for good
      for (auto& r : ranks_) r.reset();
    }
  }

  const mesh_shape mesh_;
  const number type_;
  typename Device::parts shared_;
  target target_;
  const std::string description_;
  Pool pool_;
  std::vector<std::unique_ptr<rank_on<Device, Context>>> ranks_;  // those of this process
};

}  // namespace cfp
