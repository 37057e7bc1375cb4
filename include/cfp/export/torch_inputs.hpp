// What several children of a module of PyTorch read: that is converted once, at the module.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

using styles_by_axis = std::map<int, std::map<std::string, std::string>>;  // of modules

class shared_inputs {
 public:
  /// A child that is split by columns along an axis, the value that it reads, as that arrives and as it reads it.
  void add(int axis, const std::string& child, int value, const std::string& given, const std::string& read) {
    const std::size_t dot = child.rfind('.');
    if (dot == std::string::npos) return;
    input& of = inputs_[{axis, child.substr(0, dot), value}];
    of.given = given, of.read = read, of.readers.push_back(child);
  }
  /// Modules with several such children: "(Shard(1), Replicate())".
  styles_by_axis prepared() const {
    styles_by_axis out;
    for (const auto& [where, how] : inputs_)
      if (how.readers.size() > 1) out[where.axis][where.module] = "(" + how.given + ", " + how.read + ")";
    return out;
  }
  /// Children of these find it converted.
  styles_by_axis adapted(styles_by_axis styles) const {
    for (const auto& [where, how] : inputs_)
      for (const std::string& child : how.readers)
        if (std::string& style = styles[where.axis][child]; how.readers.size() > 1)
          style.replace(style.find('=') + 1, how.given.size(), how.read);
    return styles;
  }

 private:
  struct place {
    int axis;
    std::string module;
    int value;
    auto operator<=>(const place&) const = default;
  };
  struct input {
    std::string given, read;
    std::vector<std::string> readers;
  };
  std::map<place, input> inputs_;
};

}  // namespace cfp::detail
