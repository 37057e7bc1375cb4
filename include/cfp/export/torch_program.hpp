// What a Python file for PyTorch begins and ends with.
#pragma once

#include <string_view>

namespace cfp::inline v0_1::detail {

inline constexpr std::string_view torch_begin = R"py(
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel,
                                               SequenceParallel, parallelize_module)

)py";

inline constexpr std::string_view torch_end = R"py(

def make_mesh(device_type="cuda"):
    return init_device_mesh(device_type, tuple(AXES.values()), mesh_dim_names=tuple(AXES))


def distribute(params, mesh):
    """Of whole tensors by public name DTensors as the plan has them at rest, compound dimensions viewed apart."""
    return {name: distribute_tensor(params[name].reshape(apart), mesh, rests)
            for name, (_, apart, rests, _) in PARAMETERS.items()}


def parallelize(model, mesh, keywords={}):
    """A torch.nn.Module whose modules bear the public names, axis by axis; then FSDP over what rests in pieces.
    keywords: by which keyword a module of PREPARED is given what its children read, by the last part of its name; else
    it is its one positional argument."""
    from torch.distributed.fsdp import fully_shard
    for axis, modules in PARALLELIZE.items():
        parallelize_module(model, mesh[axis], modules)
    for axis, modules in PREPARED.items():
        for name, (given, read) in modules.items():
            keyword = keywords.get(name.rpartition(".")[2])
            if keyword:
                once = PrepareModuleInput(input_kwarg_layouts={keyword: given},
                                          desired_input_kwarg_layouts={keyword: read})
            else:
                once = PrepareModuleInput(input_layouts=(given,), desired_input_layouts=(read,))
            parallelize_module(model, mesh[axis], {name: once})
    for axes, groups in FSDP.items():
        # Of two axes FSDP would make replicas of pieces.
        over = mesh[axes] if isinstance(axes, str) else mesh[axes]._flatten("_".join(axes))
        for group in groups:
            fully_shard(model.get_submodule(group), mesh=over, reshard_after_forward=group in GATHERED_AGAIN)
    return model
)py";

}  // namespace cfp::detail
