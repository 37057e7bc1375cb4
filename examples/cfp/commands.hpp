// The commands of the program `cfp`, a file each. They return its exit code.
#pragma once

#include <string>
#include <vector>

namespace program {

struct arguments;

int plan(const arguments&);            ///< finds a plan, for ranks here or for a machine that is described
int plan_in_stages(const arguments&);  ///< the same in stages, for a machine that is described
int plan_course(const arguments&);     ///< for sequences of several lengths, or a machine that becomes another
int plan_in_fleet(const arguments&);   ///< which machine of several, and how much of it
int run(const arguments&);             ///< plans, verifies and compares
int verify(const arguments&);          ///< plans, and trains like one rank or says where not
int train(const arguments&);           ///< trains under a plan
int compare(const arguments&);         ///< runs the plan in turn with those people use
int analyse(const arguments&);         ///< blocks, segments, search space, what known plans need: nothing is run
int explain(const arguments&);         ///< what else decisions could do, where other plans lose, what memory is worth
int sweep(const arguments&);           ///< measures the machine here and writes its file
int schedule(const arguments&);        ///< what the ranks of a pipeline do when, and what that costs: nothing is run
int report_plan(const arguments&);     ///< finds a plan, or takes a saved one, and writes a page of it
int export_plan(const arguments&);     ///< a saved plan in other forms
std::vector<std::string> export_targets();  ///< these

}  // namespace program
