"""What RDNA 3 has and the simulator refuses by name, from LLVM's tests: an example of each kind.

`python -m tests.simulator.isa.refused` writes the table in COVERAGE.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from flydsl.arch import get_arch
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import Program
from flydsl.simulator.isa.coverage import TEMPLATE

GPUS = ("gfx1100", "gfx1151")
EXAMPLES: Mapping[str, str] = {
    "images": "image_load v0, v0, s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_1D",
    "samplers": "image_sample v[64:66], v32, s[4:11], s[100:103] dmask:0x7 dim:SQ_RSRC_IMG_1D",
    "ray tracing": "image_bvh_intersect_ray v[39:42], [v50, v46, v[20:22], v[40:42], v[47:49]], s[12:15]",
    "stacks of ray tracing": "ds_bvh_stack_rtn_b32 v1, v0, v2, v[3:6]",
    "typed buffers": "tbuffer_load_format_x v4, off, s[8:11], s3 format:[BUF_FMT_8_UNORM] offset:4",
    "formatted buffer accesses": "buffer_load_format_xy v[4:5], off, s[8:11], s3 offset:4",
    "texture fail (tfe)": "buffer_load_b32 v[4:5], off, s[8:11], s3 offset:4 tfe",
    "export": "exp mrt0 v4, v3, v2, v1",
    "interpolation": "v_interp_p10_f32 v0, v1, v2, v3 wait_exp:5",
    "parameters in LDS": "lds_param_load v1, attr0.x wait_vdst:15",
    "LDS by M0": "lds_direct_load v1 wait_vdst:15",
    "global data share (gds)": "ds_add_u32 v1, v2 offset:4 gds",
    "global wave sync": "ds_gws_barrier v1 gds",
    "ordered counts": "ds_ordered_count v1, v2 offset:4 gds",
    "registers of the global data share": "ds_add_gs_reg_rtn v[2:3], v1 offset:4 gds",
    "relative scalar registers": "s_movrels_b32 s0, s1",
    "relative registers with DPP": "v_movrels_b32_dpp v5, v1 row_mirror row_mask:0xf bank_mask:0xf",
    "mixed precision with DPP": "v_fma_mix_f32_e64_dpp v0, v1, v2, v3 row_mirror row_mask:0xf bank_mask:0xf",
    "loops over halves of a wave": "s_subvector_loop_begin s4, 4",
    "branches to numbers": "s_branch 4",
    "branches of debuggers": "s_cbranch_cdbgsys 4",
    "returns from traps": "s_rfe_b64 s[0:1]",
    "probes of addresses": "s_atc_probe 7, s[4:5], 0x64",
    "an end for pixels": "s_endpgm_ordered_ps_done",
    "messages that stop the wave": "s_sendmsghalt sendmsg(0, 0, 0)",
    "killing a wave": "s_setkill 0",
    "a program's version": "s_version 0x1234",
    "signs on dot products of two halves": "v_dot2_f16_f16 v5, -v1, |v2|, v3",
    "clamps on products of 24 bits": "v_mul_u32_u24_e64 v5, v1, v2 clamp",
    "a clamp on a pair of halves": "v_cvt_pk_rtz_f16_f32_e64 v5, v1, v2 clamp",
    "null for the address in scratch": "scratch_load_b32 v5, off, null",
    "scc as an operand of dot products": "v_dot4_i32_iu8 v5, v1, v2, src_scc",
    "neg_hi of integer WMMA": "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:3], v[4:7], v[8:15] neg_lo:[1,0,0] neg_hi:[1,0,0]",
}
_FORM = re.compile(r"this form of \w+ \((.*)\)")


def problems(gpu: str) -> dict[str, str]:
    """What is refused -> what the simulator says, empty where it has a meaning."""
    listing = read_listing("\n".join(["L:", *EXAMPLES.values(), ""]))
    program = Program.from_listing({}, listing, get_arch(gpu))
    return dict(zip(EXAMPLES, (instruction.problem for instruction in program.instructions), strict=True))


def table() -> str:
    """The lines about what RDNA 3 is refused, as COVERAGE.md has them."""
    rows = ["| refused on RDNA 3 | for example | because |", "| --- | --- | --- |"]
    for what, problem in problems(GPUS[0]).items():
        reason = match[1] if (match := _FORM.fullmatch(problem)) else "it has no meaning here"
        rows.append(f"| {what} | `{EXAMPLES[what].replace('|', chr(92) + '|')}` | {reason} |")
    return "\n".join(rows)


if __name__ == "__main__":
    pattern = re.compile(r"\| refused on RDNA 3 \|.*(\n\|.*)+")
    TEMPLATE.write_text(pattern.sub(lambda _: table(), TEMPLATE.read_text()))
