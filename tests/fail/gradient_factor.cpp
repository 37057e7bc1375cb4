// Must not compile: the rule of a gradient's step misspells a factor.
// expected-error {{a gradient's steps have the factors of their operator's rule}}
// expected-words {{halve: step 0 of its gradient, "... widht -> ... widht", has a factor 'widht', which its rule has
// not; it has 'width'}}
#include <cfp/model/trace.hpp>
#include <cfp/op/catalogue.hpp>
struct halved_t : cfp::op<"... width -> ... width", halved_t> {
  template <class T>
  static T apply(T x) {
    return x / T(2);
  }
  static constexpr std::array<cfp::gradient_step, 1> gradient = {
      {{&cfp::info<cfp::copy_t>, "... width -> ... width", {{{cfp::gradient, 0}}, 1}, {{0}, 1}}}};
};
inline cfp::tensor halved(cfp::tensor x) { return halved_t{}(x); }
#ifndef CFP_CONTROL
struct halve_t : cfp::op<"... width -> ... width", halve_t> {
  template <class T>
  static T apply(T x) {
    return x / T(2);
  }
  static constexpr std::array<cfp::gradient_step, 1> gradient = {
      {{&cfp::info<cfp::copy_t>, "... widht -> ... widht", {{{cfp::gradient, 0}}, 1}, {{0}, 1}}}};
};
inline cfp::tensor halve(cfp::tensor x) { return halve_t{}(x); }
#endif
int main() {}
