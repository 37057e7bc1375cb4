// Compiles, though it says it must not.
// expected-error {{anything}}
int main() {}
