// What a session leaves in files, and goes on from.
#pragma once

#include <cfp/export/plan_file.hpp>
#include <cfp/export/plan_header.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/file/whole_file.hpp>
#include <cfp/session/first_process.hpp>
#include <cfp/session/session_search.hpp>

#include <optional>
#include <string>
#include <utility>

namespace cfp::inline v0_1 {

CFP_INLINE saved_plan session::parts::saved(const std::string& path) const {
  const std::optional<std::string> text = detail::whole_file(path);
  if (!text) throw bad_input("plan " + path + detail::unreadable(path));
  return read_plan(*text, "plan " + path, id(), g, whole(), decided);
}

CFP_INLINE std::optional<training_start> session::parts::start() const {
  if (state) return state->start();
  if (!public_weights) return std::nullopt;
  training_start out;
  out.path = public_weights->path();
  for (const auto& [value, numbers] : public_weights->weights()) out.tensors.emplace(value, numbers);
  return out;
}

CFP_INLINE cfp::plan session::parts::made_as(const std::string& label, const saved_plan& saved,
                                             const std::string& path) {
  tell("making the program of plan " + path);
  cfp::plan out = made(label, g, saved.choices, saved.stages, ranks());
  out.predicted_ms = saved.predicted_ms;
  return out;
}

CFP_INLINE void session::load_state(const std::string& path) {
  parts& s = mine();
  state_file<float> from = state_file<float>::open(path, s.g);  // or what was trained stays
  s.training.reset();
  s.public_weights.reset();
  s.state.emplace(std::move(from));
  s.lost_at = 0;
}

CFP_INLINE void session::load_weights(const std::string& path, const weight_layout& layout) {
  parts& s = mine();
  checkpoint from(path, s.g, layout);  // or what was trained stays
  s.training.reset();
  s.state.reset();
  s.public_weights.emplace(std::move(from));
  s.lost_at = 0;
}

CFP_INLINE trainer& session::parts::trained_for(session& of, const std::string& path) {
  if (!training) of.train([](long) { return batch{}; }, 0);  // as training begins
  if (lost_at > 0)
    throw bad_input(path + ": not written: the loss of step " + std::to_string(lost_at) +
                    " is no finite number, and neither are the weights behind it");
  return *training;
}

CFP_INLINE void session::save_state(const std::string& path) { mine().trained_for(*this, path).save(path); }

CFP_INLINE void session::save_weights(const std::string& path, const weight_layout& layout) {
  parts& s = mine();
  s.trained_for(*this, path).save_weights(path, layout, s.public_weights ? &*s.public_weights : nullptr);
}

CFP_INLINE void session::save_plan(const std::string& path) {
  parts& s = mine();
  const found_plan& f = s.search();
  in_first_process(s.ranks(), [&] {
    write_file(path, to_json(f.best, s.g, s.whole(), s.decided, f.model, f.stages ? &*f.stages : nullptr).dump(1));
  });
}

CFP_INLINE void session::save_header(const std::string& path) {
  parts& s = mine();
  const found_plan& f = s.search();
  in_first_process(s.ranks(), [&] {
    const segment_times times(s.blocks, s.segments, s.decided);
    write_file(path, plan_header(detail::header_space(path), f.model, f.best, s.g, times));
  });
}

}  // namespace cfp
