// Everything that reads a text, under libFuzzer: any input ends in a value or in a sentence, what was read, written and
// read again is equal. CFP_FUZZ names the reader.
#include "fuzz.hpp"

#include <cfp/core/error.hpp>
#include <cfp/core/sharded.hpp>
#include <cfp/core/spell.hpp>
#include <cfp/model/read_mesh.hpp>

#include <cstring>
#include <sstream>

namespace fuzz {

namespace {

std::vector<std::string> split_at(const std::string& text, char at) {
  std::vector<std::string> out;
  std::stringstream in(text);
  for (std::string one; std::getline(in, one, at);) out.push_back(one);
  return out;
}

bool refused(const cfp::text_error& e, std::size_t length) {
  if (!e) return false;
  must(std::strlen(e.what) > 0 && e.column >= 1 && e.column <= static_cast<int>(length) + 1, "a column of the text");
  return true;
}

// Unbound, and bound to operands of as many dimensions as its last characters say.
void read_rule_text(const std::string& text) {
  int ranks[cfp::max_operands]{};
  for (std::size_t i = 0; i < std::size(ranks) && i < text.size(); ++i) ranks[i] = text[text.size() - 1 - i] & 7;
  refused(cfp::outline(text).problem, text.size());
  for (const cfp::parsed_rule& r : {cfp::read_rule(text), cfp::read_rule(text, ranks)}) {
    if (refused(r.problem, text.size())) continue;
    const cfp::rule_text once = cfp::spell(r.value);
    const cfp::parsed_rule again = cfp::read_rule(once.view());
    must(!again.problem, "what a rule is spelled as can be read: " + std::string(once.view()));
    must(cfp::spell(again.value) == once.view(), "a rule is the same again: " + std::string(once.view()));
  }
}

// One text per line.
cfp::dimensions dims_of(const std::vector<std::string>& lines) {
  cfp::list<std::string_view, cfp::max_dims> texts;
  for (const std::string& line : lines) texts.push(line);
  const cfp::dimensions out = cfp::detail::read_dimensions(texts);
  int column = 0;
  const cfp::sentence why = cfp::detail::dimensions_problem(texts, column);
  must(out.readable == why.empty(), "what cannot be read is said: " + std::string(why.view()));
  return out;
}
void read_dims(const std::string& text) {
  const std::vector<std::string> lines = split_at(text, '\n');
  const cfp::dimensions d = dims_of(lines);
  if (!d.readable) return;
  std::vector<std::string> again;
  for (int dim = 0; dim < d.written(); ++dim) {
    cfp::text<cfp::detail::dimension_text::capacity> out;
    cfp::detail::write_dimension(d, dim, out);
    again.emplace_back(out.view());
    must(cfp::detail::stands_canonically(again.back()), "what is written is canonical: " + again.back());
  }
  must(dims_of(again) == d, "dimensions are the same again");
}

// A mesh, dimensions and a placement, a line each.
void read_placements(const std::string& text) {
  const std::vector<std::string> lines = split_at(text, '\n');
  if (lines.size() < 3) return;
  const cfp::mesh_shape mesh = cfp::read_mesh(lines[0]);
  const std::vector<std::string> texts = split_at(lines[1], ',');
  const cfp::dimensions d = dims_of(texts);
  if (!d.readable) return;
  const cfp::partition p = cfp::detail::read_placement(lines[2], d, mesh);
  for (int a = 0; a < mesh.rank(); ++a) {
    int uses = p.partial[a].owed;
    for (int dim = 0; dim < p.rank(); ++dim)
      for (const signed char axis : p.dims[dim]) uses += axis == a;
    must(uses <= 1, "an axis does one thing");
  }
  const auto written = cfp::describe<199>(p, d.parts, mesh);
  must(cfp::detail::read_placement(written.view(), d, mesh) == p, "a partition is the same again");
}

void read_mesh_text(const std::string& text) {
  const cfp::mesh_shape mesh = cfp::read_mesh(text);
  must(mesh.devices() >= 1, "a mesh has devices");
  must(cfp::read_mesh(cfp::to_string(mesh), mesh.devices()) == mesh, "a mesh is the same again");
}

}  // namespace

const std::vector<reader> readers = {
    {"rule", &read_rule_text}, {"dimensions", &read_dims}, {"placement", &read_placements}, {"mesh", &read_mesh_text}};

bool ours(const std::exception& e) {
  return dynamic_cast<const cfp::bad_input*>(&e) || dynamic_cast<const cfp::limit_reached*>(&e) ||
         dynamic_cast<const cfp::error*>(&e);
}

void write_seeds(const std::string&) {}

}  // namespace fuzz
