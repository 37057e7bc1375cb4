// Fails, but says something else than it should.
// expected-error {{one thing}}
#ifndef CFP_CONTROL
static_assert(false, "another thing");
#endif
int main() {}
