// Everything at once, whatever the order: no header gets in another's way. What needs MPI or nvcc is not of it.
#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/cfp.hpp>
#include <cfp/core.hpp>
#include <cfp/families/families.hpp>
#include <cfp/pipeline/named_schedules.hpp>
#include <cfp/pipeline/schedule_file.hpp>
#include <cfp/pipeline/schedule_picture.hpp>
#include <cfp/plan/mesh_search.hpp>
#include <cfp/plan/stages/staged_search.hpp>
#include <cfp/program/layer.hpp>
#include <cfp/solve/cost_file.hpp>
#include <cfp/solve/explain/explanation.hpp>
#include <cfp/solve/memory/pareto.hpp>
#include <cfp/solve/other/alpa_stages.hpp>
#include <cfp/solve/other/dapple_stages.hpp>
#include <cfp/solve/other/exhaustive.hpp>
#include <cfp/solve/other/fastest_options.hpp>
#include <cfp/solve/other/galvatron_layers.hpp>
#include <cfp/solve/other/greedy_plan.hpp>
#include <cfp/solve/other/hybrid_strategies.hpp>
#include <cfp/solve/other/markov_chain.hpp>
#include <cfp/solve/other/pipedream_stages.hpp>
#include <cfp/solve/other/terapipe_slices.hpp>
#include <cfp/solve/stages.hpp>

int main() {}
