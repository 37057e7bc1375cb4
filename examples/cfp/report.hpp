// How the program ends when something was thrown.
#pragma once

namespace program {

/// Says what is being thrown, and returns the exit code for it: 2 for what somebody gave, else 1.
int report();

}  // namespace program
