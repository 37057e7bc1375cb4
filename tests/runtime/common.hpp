// What tests of whole trainings include.
#pragma once

#include "../catch.hpp"
#include "small.hpp"

#include <cfp/backend/threads.hpp>
#include <cfp/export/plan_file.hpp>
#include <cfp/export/plan_header.hpp>
#include <cfp/families/families.hpp>
#include <cfp/plan/search.hpp>
#include <cfp/plan/usual_plans.hpp>
#include <cfp/session/race.hpp>
#include <cfp/session/session.hpp>
#include <cfp/session/verification.hpp>
