// A schedule as people look at it: a row for each rank, time to the right.
#pragma once

#include <cfp/pipeline/simulate_pipeline.hpp>

#include <cstdio>
#include <string>

namespace cfp::inline v0_1 {

namespace detail {

struct slot_look {
  const char* called;
  const char* colour;
};
// As slot::kind_t.
inline constexpr slot_look slot_looks[] = {{"forward", "#8ecae6"},
                                           {"backward", "#ffb703"},
                                           {"backward for inputs", "#ffb703"},
                                           {"backward for weights", "#fb8500"},
                                           {"update", "#6a994e"}};

/// What a slot is counted as: its micro-batch, or the slice of all micro-batches in turn.
inline int number_of(const pipeline_schedule& s, const slot& x) {
  return x.micro_batch * s.slices + x.stage % s.slices;
}

class schedule_svg {
 public:
  schedule_svg(const pipeline_schedule& s, const pipeline_run& run) : s_(s), run_(run) {}

  std::string text() {
    const int height = top + row * s_.count() + 34;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" ", width, height,
        width, height);
    out_ += "font-family=\"sans-serif\" font-size=\"12\">\n";
    put("<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height);
    const std::string slices = s_.slices > 1 ? " of " + std::to_string(s_.slices) + " slices" : "";
    put("<text x=\"%d\" y=\"18\">%s: %d stages, %d micro-batches%s; %.4g ms, %.1f%% idle</text>\n", left,
        s_.name.c_str(), s_.stages / s_.slices, s_.micro_batches, slices.c_str(), run_.ms, 100 * run_.idle());
    for (int r = 0; r < s_.count(); ++r) row_of(r);
    legend(height - 10);
    return out_ + "</svg>\n";
  }

 private:
  static constexpr int width = 960, left = 60, top = 28, row = 26;

  template <class... T>
  void put(const char* format, const T&... what) {
    char line[512];
    std::snprintf(line, sizeof line, format, what...);
    out_ += line;
  }
  double x(double ms) const { return left + (width - left - 10) * (run_.ms > 0 ? ms / run_.ms : 0); }

  void row_of(int r) {
    const int y = top + row * r;
    put("<text x=\"6\" y=\"%d\">rank %d</text>\n", y + 17, r);
    put("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#eeeeee\"/>\n", left, y + 2, width - left - 10,
        row - 4);
    const auto& mine = s_.ranks[static_cast<std::size_t>(r)];
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const slot_times& t = run_.slots[static_cast<std::size_t>(r)][i];
      const double wide = x(t.end) - x(t.begin);
      if (wide <= 0) continue;
      // Of several stages or slices of a rank the later ones are lighter.
      put("<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\" fill-opacity=\"%.2f\" stroke=\"white\" "
          "stroke-width=\"0.6\"><title>%s</title></rect>\n",
          x(t.begin), y + 2, wide, row - 4, slot_looks[mine[i].kind].colour, 1 - 0.5 * lightness(mine[i]),
          describe(mine[i]).c_str());
      if (wide > 12)
        put("<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\" font-size=\"10\">%d</text>\n",
            (x(t.begin) + x(t.end)) / 2, y + 17, number_of(s_, mine[i]));
    }
  }
  int lightness_of(const slot& x) const { return s_.slices > 1 ? x.stage % s_.slices : x.stage / s_.count(); }
  double lightness(const slot& x) const { return lightness_of(x) / std::max(1.0, 1.0 * s_.stages / s_.count()); }
  void legend(int y) {
    int at = left;
    for (int kind = 0; kind < 5; ++kind) {
      bool any = false;
      for (std::size_t r = 0; r < s_.ranks.size(); ++r)
        for (std::size_t i = 0; i < s_.ranks[r].size(); ++i)
          any = any || (s_.ranks[r][i].kind == kind && run_.slots[r][i].end > run_.slots[r][i].begin);
      if (!any) continue;
      put("<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n", at,
          y - 10, slot_looks[kind].colour, at + 15, y, slot_looks[kind].called);
      at += 150;
    }
  }

  const pipeline_schedule& s_;
  const pipeline_run& run_;
  std::string out_;
};

}  // namespace detail

/// As SVG; `run` is what `simulate` says of the schedule.
inline std::string svg_of(const pipeline_schedule& s, const pipeline_run& run) {
  return detail::schedule_svg(s, run).text();
}

/// Lines of text, a character for each `ms` (> 0) of time: the micro-batch's last digit forward, letters from a on
/// backward; of slices their number over all micro-batches.
inline std::string text_of(const pipeline_schedule& s, const pipeline_run& run, double ms) {
  std::string out;
  for (int r = 0; r < s.count(); ++r) {
    const auto& mine = s.ranks[static_cast<std::size_t>(r)];
    std::string line(static_cast<std::size_t>(run.ms / ms + 0.5), '.');
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const slot_times& t = run.slots[static_cast<std::size_t>(r)][i];
      const int number = detail::number_of(s, mine[i]);
      const char c = mine[i].kind == slot::forward  ? static_cast<char>('0' + number % 10)
                     : mine[i].kind == slot::update ? '='
                                                    : static_cast<char>('a' + number % 26);
      const auto column = [&](double at) { return std::min(line.size(), static_cast<std::size_t>(at / ms + 0.5)); };
      for (std::size_t k = column(t.begin), end = column(t.end); k < end; ++k) line[k] = c;
    }
    out += "rank " + std::to_string(r) + "  " + line + "\n";
  }
  return out;
}

}  // namespace cfp
