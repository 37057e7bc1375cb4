// So that what `common.hpp` includes is compiled once.
