// A linear program, some of whose columns are whole numbers, solved by CBC. Present where CBC's C interface is
// (coinor-libcbc-dev; link CbcSolver and Cbc): CFP_HAS_CBC then is defined.
#pragma once

#if __has_include(<coin/Cbc_C_Interface.h>)
#define CFP_HAS_CBC 1
#include <coin/Cbc_C_Interface.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

namespace cfp::inline v0_1::detail {

class mixed_program {
 public:
  mixed_program() : model_(Cbc_newModel()) { Cbc_setLogLevel(model_.get(), 0); }

  /// From 0 to `most`; an infinite cost keeps it 0. Returns its number.
  int column(double cost, bool whole, double most = 1) {
    const bool possible = cost < std::numeric_limits<double>::infinity();
    Cbc_addCol(model_.get(), "", 0, possible ? most : 0, 0, static_cast<char>(whole), 0, nullptr, nullptr);
    cost_.push_back(possible ? cost : 0);
    if (possible) scale_ = std::max(scale_, std::abs(cost) / 1000);
    return columns() - 1;
  }
  int columns() const { return static_cast<int>(cost_.size()); }

  /// The sum of factors times columns is at most `right` (sense L), at least (G) or equal (E).
  void row(const std::vector<int>& columns, const std::vector<double>& factors, char sense, double right) {
    Cbc_addRow(model_.get(), "", static_cast<int>(columns.size()), columns.data(), factors.data(), sense, right);
  }

  /// The least cost, within some seconds.
  void solve(double max_seconds) {
    // Costs of any size are told apart relatively; CBC's own tolerances are absolute.
    for (int c = 0; c < columns(); ++c) Cbc_setObjCoeff(model_.get(), c, cost_[static_cast<std::size_t>(c)] / scale_);
    Cbc_setObjSense(model_.get(), 1);
    Cbc_setParameter(model_.get(), "increment", "1e-9");
    Cbc_setParameter(model_.get(), "ratioGap", "0");
    Cbc_setParameter(model_.get(), "allowableGap", "1e-9");
    if (max_seconds < 1e9) {
      Cbc_setParameter(model_.get(), "timeMode", "elapsed");
      Cbc_setMaximumSeconds(model_.get(), max_seconds);
    }
    Cbc_solve(model_.get());
  }

  bool infeasible() const { return Cbc_isProvenInfeasible(model_.get()) != 0; }
  bool optimal() const { return Cbc_isProvenOptimal(model_.get()) != 0; }
  double cost() const { return Cbc_getObjValue(model_.get()) * scale_; }
  double bound() const { return Cbc_getBestPossibleObjValue(model_.get()) * scale_; }
  const double* values() const { return Cbc_bestSolution(model_.get()); }  ///< of each column; null: none found

 private:
  struct deleter {
    void operator()(Cbc_Model* m) const { Cbc_deleteModel(m); }
  };
  std::unique_ptr<Cbc_Model, deleter> model_;
  std::vector<double> cost_;  // of each column
  double scale_ = 1e-12;
};

}  // namespace cfp::inline v0_1::detail
#endif
