// Models of the families that are carried, as they are and as small as can be.
#pragma once

#include <cfp/families/families.hpp>

#include <string>

namespace small_tests {

inline cfp::families::config_file carried(const std::string& model) {
  return cfp::families::config_file(std::string(CFP_SOURCE_DIR) + "/examples/models/" + model + ".json");
}

/// All that a family does is still there.
inline cfp::families::transformer smallest(cfp::families::transformer t) {
  const bool grouped = t.kv_heads > 1 && t.kv_heads < t.heads;
  if (t.kv_heads > 0) t.kv_heads = grouped ? 2 : t.kv_heads == 1 ? 1 : 4;
  if (t.depth > 0) t.depth = 6;
  const long depth = t.depth > 0 ? t.depth : 4;
  if (t.turned > 0) t.turned = t.turned < t.head_depth() ? depth - 2 : depth;
  t.layers = 2, t.heads = 4, t.width = 16, t.hidden = 24, t.vocabulary = 32, t.positions = 16;
  if (t.window > 0) t.window = 3;
  if (t.score_cap > 0) t.score_cap = 2;
  t.deviation = 0.4;
  t.embedding_dropout = t.attention_dropout = t.residual_dropout = 0;
  if (cfp::families::experts_form& e = t.experts; e.count > 0) {
    e.hidden = 8;
    if (e.shared > 0) e.shared = 8;
    if (e.dense_layers > 0) e.dense_layers = 1;
    if (e.sets > 1) e.sets = 4, e.kept = 2;
    e.count = e.sets > 1 ? 8 : 4, e.choices = 2;
  }
  if (t.image.size > 0) t.image = {4, 2, 2};
  if (cfp::families::latent_form& a = t.latent; a.keys > 0) {
    a.keys = 6, a.still = 4, a.turned = 4, a.values = 6;
    if (a.queries > 0) a.queries = 10;
    t.depth = a.still + a.turned;
  }
  t.batch = 4, t.sequence = 8;
  return t;
}

}  // namespace small_tests
