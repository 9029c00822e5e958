"""The mnemonics whose references stand in tests by hand, often in parts."""

from __future__ import annotations

_EIGHT, _SIX, _WIDE = ("fp8", "bf8"), ("fp6", "bf6"), ("f32", "f16", "bf16")


def of_rdna_memory() -> set[str]:
    """Those of `isa/test_rdna_memory.py`, by the names of the table."""
    new = ("cond_sub_u32", "sub_clamp_u32", "min_num_f32", "max_num_f32")
    names = {f"{space}_atomic_{name}" for space in ("global", "flat", "buffer") for name in new}
    in_lds = {
        name.rpartition("_")[::2] for name in (*new, "min_num_f64", "max_num_f64", "cmpstore_b32", "cmpstore_b64")
    }
    names |= {"global_load_addtid_b32", "global_store_addtid_b32", "global_load_tr_b64", "global_load_tr_b128"}
    names |= {f"ds_{operation}{rtn}_{type_}" for operation, type_ in in_lds for rtn in ("", "_rtn")}
    names |= {f"{space}_{way}_block" for space in ("global", "scratch") for way in ("load", "store")}
    small = ("ubyte", "sbyte", "ushort", "sshort", "dwordx3")
    return names | {f"s_{buffer}load_{name}" for buffer in ("", "buffer_") for name in small}


def of_rdna_lanes() -> set[str]:
    """Those of `isa/test_rdna_lanes.py`."""
    names = {"v_dot2_f16_f16", "v_dot2_bf16_bf16", "v_fmac_f16", "v_swap_b16", "v_movrels_b32", "v_movreld_b32"}
    names |= {"v_movrelsd_b32", "v_movrelsd_2_b32", "v_swaprel_b32"}
    names |= {f"v_permlane{x}16{var}_b32" for x in ("", "x") for var in ("", "_var")}
    names |= {f"v_dot4_f32_{x}_{y}" for x in _EIGHT for y in _EIGHT}
    return names | {f"v_s_{name}_{type_}" for name in ("rcp", "rsq", "sqrt", "exp", "log") for type_ in ("f16", "f32")}


def of_rdna3() -> set[str]:
    """Those of `isa/test_rdna3.py`."""
    names = {f"{space}_atomic_{n}_f32" for space in ("global", "flat", "buffer") for n in ("min", "max", "cmpswap")}
    return names | {f"ds_cmpstore{rtn}_f{bits}" for rtn in ("", "_rtn") for bits in (32, 64)} | {"v_fmac_dx9_zero_f32"}


def by_hand() -> set[str]:
    """Those of `isa/test_cdna4.py` and `isa/test_cdna2.py`."""
    names = {f"pk_{w}_{n}" for w in _WIDE for n in (*_EIGHT, "fp4")}
    names |= {f"pk_{n}_{w}" for w in _WIDE for n in (*_EIGHT, "fp4")}
    names |= {f"{w}_{n}" for w in _WIDE[:2] for n in _EIGHT} | {f"sr_{n}_{w}" for w in _WIDE for n in _EIGHT}
    names |= {f"pk32_{w}_{n}" for w in _WIDE for n in _SIX} | {f"pk32_{n}_{w}" for w in _WIDE[1:] for n in _SIX}
    names |= {f"2xpk16_{n}_f32" for n in _SIX}
    products = {f"v_mfma_{s}f32_{shape}_f8f6f4" for s in ("", "scale_") for shape in ("16x16x128", "32x32x64")}
    extremes = {f"v_{p}{n}imum3_{t}" for n in ("min", "max") for p, t in (("", "f32"), ("pk_", "f16"))}
    reads = {f"ds_read_b{96 if bits == 6 else 64}_tr_b{bits}" for bits in (16, 8, 6, 4)}
    others = {f"v_{n}_f32" for n in ("mad", "mac", "madmk", "madak", "mad_legacy")}  # `isa/test_cdna2.py`
    others |= {f"v_{n}" for n in ("bitop3_b16", "bitop3_b32", "prng_b32", "dot2_f32_bf16", "dot2c_f32_bf16")}
    others |= {f"v_cvt_{n}" for n in ("f32_bf16", "pk_f16_f32", "sr_bf16_f32", "sr_f16_f32")}
    others |= {"v_ashr_pk_i8_i32", "v_ashr_pk_u8_i32", "v_permlane16_swap_b32", "v_permlane32_swap_b32"}
    to_lds = {"global_load_lds_dwordx3", "global_load_lds_dwordx4"}
    return {f"v_cvt_scalef32_{n}" for n in names} | products | extremes | reads | others | to_lds


def of_cdna5() -> set[str]:
    """Those of `isa/test_gfx1250.py`."""
    names = {f"cvt_scale_pk{16 if n in _SIX else 8}_{w}_{n}" for w in _WIDE for n in (*_EIGHT, *_SIX, "fp4")}
    names |= {f"cvt_scalef32_pk{16 if n in _SIX else 8}_{n}_{w}" for w in _WIDE for n in (*_EIGHT, *_SIX, "fp4")}
    names |= {f"cvt_{form}" for n in _EIGHT for form in (f"f16_{n}", f"pk_f16_{n}", f"pk_{n}_f16", f"sr_{n}_f16")}
    names |= {f"{n}_bf16" for n in ("sin", "cos", "tanh")} | {f"tanh_{t}" for t in ("f16", "f32")}
    names |= {f"permlane_{n}_b32" for n in ("bcast", "up", "down", "xor", "idx_gen")}
    names |= {f"perm_pk16_b{n}_u4" for n in (4, 6, 8)} | {"fma_mix_f32_bf16", "fma_mixlo_bf16", "fma_mixhi_bf16"}
    loads = {f"{space}_load_tr{n}_b{width}" for space in ("ds", "global") for n, width in _TRANSPOSED.items()}
    monitored = {f"{space}_load_monitor_b{n}" for space in ("global", "flat") for n in (32, 64, 128)}
    return {f"v_{name}" for name in names} | loads | monitored


def of_stochastic_packs() -> set[str]:
    """Those of `isa/test_stochastic_packs.py`."""
    names = {f"scalef32_sr_pk{16 if n in _SIX else 8}_{n}_{w}" for w in _WIDE for n in (*_EIGHT, *_SIX, "fp4")}
    names |= {f"scalef32_sr_pk32_{n}_{w}" for n in _SIX for w in _WIDE}
    names |= {f"scalef32_sr_pk_fp4_{w}" for w in _WIDE} | {"sr_pk_f16_f32", "sr_pk_bf16_f32"}
    return {f"v_cvt_{name}" for name in names}


def of_copies() -> set[str]:
    """Those of `isa/test_tensor.py`."""
    names = {"cluster_load", "cluster_load_async_to_lds", "global_load_async_to_lds", "global_store_async_from_lds"}
    return {f"{name}_b{bits}" for name in names for bits in (8, 32, 64, 128)} - {"cluster_load_b8"}


_TRANSPOSED = {16: 128, 8: 64, 6: 96, 4: 64}
