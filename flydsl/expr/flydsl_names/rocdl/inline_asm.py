"""Conversions that FlyDSL makes by inline assembly, under its path; here they are instructions like any other."""

from flydsl.expr.rocdl.convert import cvt_off_f32_i4, cvt_pk_bf16_f32

__all__ = ["cvt_off_f32_i4", "cvt_pk_bf16_f32"]
