// Ranks that are threads of this process: see backend/threads.hpp.
#pragma once

#include <cfp/backend/host/host_ranks.hpp>
#include <cfp/backend/threads.hpp>

namespace cfp::inline v0_1 {

CFP_INLINE std::unique_ptr<backend> threads(const mesh_shape& mesh, number type, const own_kernels& own) {
  return detail::host_ranks<rank_pool, rank_context>(mesh, type, own, this_processor());
}

CFP_INLINE std::unique_ptr<backend> linked_threads(const mesh_shape& mesh, number type,
                                                   const std::vector<rank_link>& links) {
  std::unique_ptr<backend> out = threads(mesh, type);
  const auto link = [&]<class T>(T) {
    if (auto* on = dynamic_cast<ranks_on<host::device<T, rank_context>, rank_pool, rank_context>*>(out.get()))
      for (std::size_t a = 0; a < links.size(); ++a) on->pool().set_link(static_cast<int>(a), links[a]);
  };
  link(double{}), link(float{}), link(bf16{});
  return out;
}

}  // namespace cfp
