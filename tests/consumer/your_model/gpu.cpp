// GPUs for ranks, by what is compiled already; where there is none, the sentence that says so.
#include <cfp/backend/gpus.hpp>
#include <cfp/cfp.hpp>

#include <exception>
#include <iostream>

cfp::graph doubling() {  // learns to give twice its input
  cfp::model net;
  const cfp::tensor x = net.input("x", {{"batch", 32}, {"width", 64}}, cfp::element::real, {});
  const cfp::tensor y = net.input("y", {{"batch", 32}, {"hidden", 64}}, cfp::element::real, {});
  const cfp::tensor found = cfp::linear(x, net.weight("w", {{"width", 64}, {"hidden", 64}}, {0, 0.1}));
  const cfp::tensor error = cfp::add(found, cfp::scaled(y, -1.0));
  net.recorded.loss = cfp::scaled(cfp::op<"batch width, batch width -> ">{}(error, error), 1.0 / (32 * 64)).id;
  return net.recorded;
}

cfp::batch numbers(long pass) {
  std::vector<float> x, y;
  for (long i = 0; i < 32 * 64; ++i)
    x.push_back(static_cast<float>((pass * 37 + i * 13) % 101) / 101), y.push_back(2 * x.back());
  return {{"x", x}, {"y", y}};
}

int main() {
  try {
    cfp::session s(doubling(), {.mesh = "data=1", .on = cfp::gpus});
    std::cout << s.plan() << s.verify(numbers, 3);
  } catch (const std::exception& e) {
    std::cout << e.what() << '\n';
  }
}
