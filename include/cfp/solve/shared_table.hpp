// Numbers that several nodes or edges have in common are held once.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// A vector of times. Copies hold the same numbers until one of them is written to, so a graph of a thousand equal
/// layers takes the memory of one, and solvers see that they are equal without looking.
class shared_table {
 public:
  shared_table() = default;
  shared_table(std::vector<double> times) : held_(std::make_shared<std::vector<double>>(std::move(times))) {}
  shared_table(std::initializer_list<double> times) : shared_table(std::vector<double>(times)) {}

  operator const std::vector<double>&() const { return all(); }
  [[nodiscard]] const std::vector<double>& all() const {
    static const std::vector<double> none;
    return held_ ? *held_ : none;
  }

  [[nodiscard]] std::size_t size() const { return all().size(); }
  [[nodiscard]] bool empty() const { return all().empty(); }
  [[nodiscard]] const double* data() const { return all().data(); }
  [[nodiscard]] double operator[](std::size_t i) const { return (*held_)[i]; }
  [[nodiscard]] auto begin() const { return all().begin(); }
  [[nodiscard]] auto end() const { return all().end(); }

  void push_back(double time) { own().push_back(time); }
  void assign(std::size_t count, double time) { held_ = std::make_shared<std::vector<double>>(count, time); }
  void set(std::size_t i, double time) { own()[i] = time; }

  /// Whether both are the same numbers in memory; equal ones need not be.
  [[nodiscard]] bool is(const shared_table& other) const { return held_ == other.held_; }
  /// Tells tables apart.
  [[nodiscard]] const void* id() const { return held_.get(); }

  friend bool operator==(const shared_table& a, const shared_table& b) { return a.is(b) || a.all() == b.all(); }

 private:
  std::vector<double>& own() {
    if (!held_) held_ = std::make_shared<std::vector<double>>();
    else if (held_.use_count() > 1) held_ = std::make_shared<std::vector<double>>(*held_);
    return *held_;
  }

  std::shared_ptr<std::vector<double>> held_;
};

}  // namespace cfp
