// The core: partitions and rules. Needs nothing but the standard library.
#pragma once

#include <cfp/core/collective.hpp>
#include <cfp/core/convert.hpp>
#include <cfp/core/list.hpp>
#include <cfp/core/mesh.hpp>
#include <cfp/core/parse.hpp>
#include <cfp/core/partition.hpp>
#include <cfp/core/placement.hpp>
#include <cfp/core/propagate.hpp>
#include <cfp/core/rule.hpp>
#include <cfp/core/text.hpp>
