// Headers that are not ours, compiled once for the tests of ours. Whether a header of ours includes what it uses of
// them, includes.sh asks.
#include <Random123/philox.h>
#include <cblas.h>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <Random123/boxmuller.hpp>
#include <boost/crc.hpp>
#include <boost/dynamic_bitset.hpp>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/interprocess/file_mapping.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <nlohmann/json.hpp>
