#!/usr/bin/env bash
# mistakes.sh COMPILER [FLAGS...]: the trainer's layouts compile to an object, and with each of these edits, one mistake
# each, they do not: one sentence, in few lines. An edit is a sed expression; what is said follows it, and how many
# sentences there are where a layout that can be is at odds with several operators.
# By g++ every edit; by others, which say the same in more time, every sixth, or with CFP_ALL=1 all.
set -uo pipefail
here=$(realpath "$(dirname "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$here/layouts.hpp" "$folder/layouts.hpp"
printf '#include "layouts.hpp"\nint main() {}\n' > "$folder/control.cpp"
if ! said=$("$@" -c -o "$folder/control.o" "$folder/control.cpp" 2>&1); then
  printf 'the layouts do not compile:\n%s\n' "$said" | cut -c1-300 | head -20
  exit 1
fi
failed=0 count=0 tried=0 every=1
"$1" --version | grep -q "Free Software" || [ "${CFP_ALL:-0}" != 0 ] || every=6
while IFS='|' read -r name edit words sentences; do
  [ -n "$name" ] || continue
  [ $((count++ % every)) = 0 ] || continue
  tried=$((tried + 1))
  { printf '// expected-words {{%s}}\n// expected-errors {{%s}}\n' "$words" "${sentences:-1}"; sed "$edit" "$here/layouts.hpp"; echo 'int main() {}'; } > "$folder/$name.cpp"
  sed -i 's/#pragma once//' "$folder/$name.cpp"
  if cmp -s <(sed "$edit" "$here/layouts.hpp") "$here/layouts.hpp"; then
    echo "$name: the edit changes nothing"
    failed=1
  elif ! report=$(bash "$here/../../fail/run.sh" "$folder/$name.cpp" "$@"); then
    printf '%s: %s\n' "$name" "$report" | cut -c1-400
    failed=1
  fi
done << 'EDITS'
axis_misspelt|s/split<"vocabulary", "model">/split<"vocabulary", "modle">/|the mesh has no axis 'modle'; its axes are 'data' and 'model'
dimension_misspelt|s/HIDDEN>, mesh, cfp::split<"hidden", "model">>>;/HIDDEN>, mesh, cfp::split<"hiden", "model">>>;/;s/using up_bias = .*/using up_bias = cfp::held_as<"up.bias", cfp::sharded<cfp::dims<HIDDEN>, mesh, cfp::split<"hidden", "model">>>;/|the tensor has no dimension 'hiden'; its dimensions are 'width' and 'hidden'
vocabulary_not_padded|s/vocabulary=50304/vocabulary=50257/|dimension 'vocabulary' has 50257 elements, which 4 devices (model=4) do not divide; take a multiple of 4 or fewer devices
row_split_first|s/using up = \(.*\)split<"hidden"/using up = \1split<"width"/|operand 1 'up' (width hidden) splits 'width' over 'model', but operand 0 'stream' (batch seq width) holds all of it|2
sequence_not_gathered|s/cfp::result_t<linear, gathered, attn>/cfp::result_t<linear, stream, attn>/|operand 1 'attn' (width three heads d) splits 'heads' over 'model', but operand 0 'stream' (batch seq width) splits 'seq' over it
sum_not_completed|s/cfp::result_t<bias, stream, down_bias>/cfp::result_t<bias, lowered, down_bias>/|operand 0 'lowered' (batch seq width) is a partial sum over 'model'
collective_over_other_axis|s/owes<embedded, stream, cfp::reduce_scatter<"seq", "model">>/owes<embedded, stream, cfp::reduce_scatter<"seq", "data">>/|embedded: from 'batch:data partial:model' to 'batch:data seq:model', step 1, reduce_scatter 'seq' over 'data', cannot follow: the tensor is then 'batch:data partial:model'; owed: reduce_scatter into 'seq' over 'model' (18874368 bytes per device)
other_collective|s/owes<lowered, stream, cfp::reduce_scatter<"seq", "model">>/owes<lowered, stream, cfp::all_reduce<"model">>/|lowered: from 'batch:data partial:model' to 'batch:data seq:model', the steps as written make 'batch:data'; owed: reduce_scatter into 'seq' over 'model'
collective_of_other_dimension|s/owes<normal_2, gathered, cfp::all_gather<"seq", "model">>/owes<normal_2, gathered, cfp::all_gather<"width", "model">>/|step 1, all_gather 'width' over 'model', cannot follow: the tensor is then 'batch:data seq:model'
collective_forgotten|s/owes<projected, stream, .*>);/owes<projected, stream>);/|projected: from 'batch:data partial:model' to 'batch:data seq:model', the steps as written make 'batch:data partial:model'
parts_in_another_order|s/dims<WIDTH, "(three=3 " HEADS ")">/dims<WIDTH, "(heads=12 three=3 d=64)">/;s/dims<"(three=3 " HEADS ")">/dims<"(heads=12 three=3 d=64)">/|has 'three' as part 2 of a compound dimension, the rule
operands_swapped|s/result_t<weighted_sum, weights, value>/result_t<weighted_sum, value, weights>/|where operand 0 (batch heads seq d) has 'd'
keys_transposed|s/using key = .*/using key = cfp::held_as<"key", cfp::sharded<cfp::dims<BATCH, "heads=12", "d=64", SEQ>, mesh, cfp::split<"batch", "data">, cfp::split<"heads", "model">>>;/|operand 1 'key' (batch heads d seq) has 'seq'
norms_not_summed|s/adam::takes<ln_1, norm_parts>/adam::takes<ln_1, norm_gradient>/|adam: the gradient of ln_1 is 'partial:data partial:model', and the buffer takes 'partial:data'; owed before: all_reduce over 'model'
elements_differ|s/using ln_2 = \(.*\)mesh>>;/using ln_2 = \1mesh>, short>;/|adam: ln_2 has elements of 2 bytes, wte of 4
tensor_forgotten|s/ down, down_bias, ln_f,/ down, ln_f,/|adam: has no tensor down.bias of this partition
another_mesh|s/using wpe = \(.*\)mesh, cfp::split<"seq", "model">/using wpe = \1cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 8>>, cfp::split<"seq", "model">/|operand 0 'stream' (batch seq width) is partitioned over the mesh (data=2 model=4), operand 1 'wpe' (seq width) over (data=2 model=8)|2
EDITS
[ $failed = 0 ] && echo "$tried mistakes of $count, each refused in one sentence"
exit $failed
