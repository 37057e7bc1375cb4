// The core: partitions, rules, operators, and the questions the compiler answers. Needs nothing but the standard library.
#pragma once

#include <cfp/core/ask.hpp>
#include <cfp/core/bind.hpp>
#include <cfp/core/check.hpp>
#include <cfp/core/collective.hpp>
#include <cfp/core/convert.hpp>
#include <cfp/core/cut.hpp>
#include <cfp/core/dims.hpp>
#include <cfp/core/explain.hpp>
#include <cfp/core/infer.hpp>
#include <cfp/core/list.hpp>
#include <cfp/core/mesh.hpp>
#include <cfp/core/owed.hpp>
#include <cfp/core/parse.hpp>
#include <cfp/core/partition.hpp>
#include <cfp/core/placement.hpp>
#include <cfp/core/planned.hpp>
#include <cfp/core/propagate.hpp>
#include <cfp/core/rule.hpp>
#include <cfp/core/sharded.hpp>
#include <cfp/core/spell.hpp>
#include <cfp/core/text.hpp>
#include <cfp/op/op.hpp>
#include <cfp/version.hpp>
