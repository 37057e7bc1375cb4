// The program in README.md.
#include <cfp/cfp.hpp>
#include <iostream>

cfp::tensor mlp(cfp::model& net, cfp::tensor x) {  // a model is an ordinary function
  const cfp::tensor h = cfp::gelu(cfp::linear(x, net.weight("up", {{"width", 64}, {"hidden", 256}}, {0, 0.1})));
  return cfp::add(x, cfp::linear(h, net.weight("down", {{"hidden", 256}, {"width", 64}}, {0, 0.1})));
}

cfp::graph regression() {  // learns to give twice its input
  cfp::model net;
  const cfp::tensor x = net.input("x", {{"batch", 32}, {"width", 64}}, cfp::element::real, {});
  const cfp::tensor error =
      cfp::add(mlp(net, x), cfp::scaled(net.input("y", {{"batch", 32}, {"width", 64}}, cfp::element::real, {}), -1.0));
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
  cfp::session s(regression(), {.mesh = "data=2"});  // threads; .on = cfp::processes, cfp::gpus
  std::cout << s.plan();                             // runs the parallel program piece by piece, solves exactly
  std::cout << s.verify(numbers, 10);                // trains like one rank, or says where not
  std::cout << s.train(numbers, 100) << s.compare(numbers, 5);  // under the plan; in turn with the plans people use
  s.save_header("plan.hpp");                                    // later: #include it, and the compiler checks it again
}
