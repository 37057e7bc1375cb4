// The whole way of a user's own model, in one object: from a model function to a plan, verified, trained and compared.
//
//   cfp::session s(my_model(config), {.mesh = "data=2,model=2"});
//   std::cout << s.plan();                      // profiles the parallel program, solves
//   std::cout << s.verify(batches);             // against one rank
//   s.train(batches, 100, [](const cfp::step_report& r) { ...; return true; });
//   s.save_header("plan.hpp");
//
// Nothing prints by itself: everything returned is a value that can be printed, and that gives itself as JSON.
#pragma once

#include <cfp/backend/own_kernels.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/export/report/report_view.hpp>
#include <cfp/model/batch.hpp>
#include <cfp/model/stored_weight.hpp>
#include <cfp/model/training.hpp>
#include <cfp/session/values.hpp>

#include <functional>
#include <memory>
#include <string>

namespace cfp::inline v0_1 {

class backend;
class model;

/// What makes ranks: cfp::threads, cfp::processes, ... (backend/).
using make_ranks = std::function<std::unique_ptr<backend>(const mesh_shape&, number, const own_kernels&)>;

struct session_options {
  /// Axes and their sizes, the last one innermost. A first one called `stage` is of the stages of a pipeline, whose
  /// plan comes from a file (`use_plan`).
  std::string mesh = "data=2";
  make_ranks on{};                ///< none: threads of this process
  number type = number::float32;  ///< what numbers are stored as
  long memory = 0;                ///< most bytes a rank may use, on a GPU all it takes there; 0: any, or what is free
  int micro_batches = 1;          ///< pieces a step's batch comes in; the model is of one piece
  training how{};                 ///< optimizer, schedule, clipping
  std::string table{};            ///< file of measured times, read and extended; none: nothing is kept
  bool lazy = false;              ///< measure only what plans that may be the best use
  double tolerance = 0;           ///< of a lazy search: how much slower, relatively, the plan may be than the best
  own_kernels kernels{};          ///< of operators that are not in the catalogue: cfp::kernels_of<my_op_t>()
  std::string name = "model";     ///< in tables, plans and headers: models of one name have one table and plan
  std::uint64_t seed = 1;         ///< of initial weights
  double deadline = 600;          ///< seconds that a rank waits for others before it fails
  /// Called while something long goes on, by every process alike; false: stop, and throw `cancelled`.
  std::function<bool(const progress&)> tell{};
};

/// Of one that was moved from nothing can be asked: every call throws bad_input.
class session {
 public:
  /// The model: a forward graph whose loss is set. Throws bad_input for options that do not fit, cfp::error for a
  /// model that does not.
  explicit session(const graph& forward, session_options options = {});
  explicit session(const model& traced, session_options options = {});
  ~session();
  session(session&&) noexcept;
  session& operator=(session&&) noexcept;

  /// Blocks, segments, and what could be chosen.
  const structure& overview() const;
  /// The same, and what known plans need of a device: nothing is run.
  const structure& analyse();

  /// Profiles and solves, the first time it is called; then returns what was found. Throws bad_input if no plan keeps
  /// the memory, or the mesh divides nothing.
  const found_plan& plan();
  /// In its place a saved plan, in stages if the mesh has them; nothing measured (of a table only what GPUs chose by
  /// timing is taken, so that they round as they did); a training begins anew (`save_state` before, `load_state` after
  /// it keeps one). Throws bad_input if it is not of this model and mesh.
  const found_plan& use_plan(const std::string& path);
  /// A saved plan of one's own, to be run and compared beside those people use: before `plan`; in stages after
  /// `use_plan`.
  void compare_with(const std::string& path);
  /// What else each decision could do and what that costs, and where other plans lose; milliseconds per step.
  std::string explain();
  /// Of the plan, with those people use beside it: what `write_report` makes a page of. Throws bad_input for a plan
  /// from a file, of which nothing was measured.
  report_view report();

  /// Trains so many steps under the plan and on one rank, each from where training begins.
  verification verify(const batch_source& batches, long steps = 10);
  /// Trains so many steps more under the plan.
  training_report train(const batch_source& batches, long steps,
                        const std::function<bool(const step_report&)>& tell = {});
  /// Runs the plan and those people use in turn, so many steps each.
  plan_comparison compare(const batch_source& batches, int steps = 20);

  /// Training goes on after a saved state, whatever mesh it was saved on.
  void load_state(const std::string& path);
  /// Writes weights and optimizer state (safetensors).
  void save_state(const std::string& path);
  /// Training begins with the weights of a public checkpoint (safetensors: a file, an index of several, or a folder of
  /// either), a fresh optimizer and step 0. `layout`: where it has them, if not by the graph's own names and shapes;
  /// `families::built_model` brings that of its family. Each rank reads its pieces when training begins. Throws
  /// bad_input for a checkpoint that is not of this model.
  void load_weights(const std::string& path, const weight_layout& layout = {});
  /// Writes weights alone as one such file, under the names and in the types of numbers of the checkpoint that they
  /// came from, if there is one, else in float32.
  void save_weights(const std::string& path, const weight_layout& layout = {});
  void save_plan(const std::string& path);    ///< JSON
  void save_header(const std::string& path);  ///< C++ that the compiler checks; its namespace is the file's name

  const graph& training_graph() const;  ///< differentiated
  backend& ranks();

 private:
  struct parts;
  parts& mine() const;
  std::unique_ptr<parts> parts_;
};

}  // namespace cfp

#if !defined(CFP_COMPILED)
#include <cfp/session/implementation.hpp>
#include <cfp/session/session_report.hpp>
#endif
