"""The passes of the fly dialect: one module each, named like the pass, with `name` and `apply(module, arch)`."""

from types import ModuleType

from flydsl.passes import (
    convert_fly_to_rocdl,
    fly_canonicalize,
    fly_convert_atom_call_to_ssa_form,
    fly_int_swizzle_simplify,
    fly_layout_lowering,
    fly_promote_regmem_to_vectorssa,
    fly_rewrite_func_signature,
    fly_rocdl_cluster_attr,
)

# By name. The order in which the pipeline runs them is that of `compiler.stages`.
PASSES: dict[str, ModuleType] = {
    module.name: module
    for module in (
        fly_rewrite_func_signature,
        fly_canonicalize,
        fly_layout_lowering,
        fly_int_swizzle_simplify,
        fly_convert_atom_call_to_ssa_form,
        fly_promote_regmem_to_vectorssa,
        convert_fly_to_rocdl,
        fly_rocdl_cluster_attr,
    )
}
