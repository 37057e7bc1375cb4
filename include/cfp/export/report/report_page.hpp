// A plan as a page: one file that a browser opens, with nothing from anywhere else.
#pragma once

#include <cfp/export/report/page_charts.hpp>
#include <cfp/export/report/page_frame.hpp>
#include <cfp/export/report/page_machine.hpp>
#include <cfp/export/report/page_memory.hpp>
#include <cfp/export/report/page_model.hpp>
#include <cfp/export/report/page_style.hpp>
#include <cfp/export/report/page_timeline.hpp>
#include <cfp/export/report/page_words.hpp>
#include <cfp/export/report/report_data.hpp>
#include <cfp/file/new_file.hpp>

#include <string>

namespace cfp::inline v0_1 {

namespace detail {

// JSON that stands in a page: whatever names say, no element ends or begins in it.
inline std::string inside_page(const nlohmann::ordered_json& j) {
  const std::string text = j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (const char c : text)
    if (c == '<') out += "\\u003c";
    else out += c;
  return out;
}

}  // namespace detail

/// HTML with its style, its script and its data (`report_data`) in it.
inline std::string report_page(const report_view& v) {
  using namespace detail;
  std::string out = page_head;
  out.append("<title>a plan</title>\n<style>").append(page_style).append("</style>").append(page_body);
  out.append(inside_page(report_data(v))).append("</script>\n<script>\n");
  for (const char* const part : {page_words, page_timeline, page_model, page_memory, page_charts, page_machine})
    out.append(part);
  return out.append("</script>\n</body>\n</html>");
}

/// Throws bad_input where it cannot be written; what was there before then stays.
inline void write_report(const report_view& v, const std::string& path) { write_file(path, report_page(v)); }

}  // namespace cfp
