"""The names of FlyDSL's API, to distinguish an unsupported name from a misspelt one.

Module -> its public names in FlyDSL 0.2.2, apart from the operation classes that its build generates, and names of
FlyDSL 0.4.2 that are unsupported.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

from flydsl.expr.flydsl_names.borrowed import borrowed
from flydsl.expr.flydsl_names.missing import INSTEAD, install, name_error, unsupported
from flydsl.expr.flydsl_names.other_names import OTHER_NAMES

install()

FLYDSL_NAMES: dict[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        "flydsl.compiler": """
            BaseBackend CompiledFunction GPUTarget JitArgumentRegistry compile compile_backend_name from_c_void_p
            from_dlpack from_torch_tensor get_backend jit kernel register_backend
        """,
        "flydsl.compiler.backends": """
            KtraceBackend get_ktrace_backend
            BaseBackend GPUTarget compile_backend_name get_backend register_backend resolve_llvm_address_space
        """,
        "flydsl.compiler.protocol": """
            DslType JitArgument Storable c_abi_spec cache_signature construct_from_ir_values dsl_align_of dsl_size_of
            extract_to_ir_values get_ir_types peek_from_ptr poke_into_ptr
        """,
        "flydsl.compiler.ast_rewriter": """
            FallbackLocations ReplaceYieldWithSCFYield RewriteBoolOps SymbolScopeTracker Transformer WrapLocations
        """,
        "flydsl.compiler.jit_argument": """
            DLTensorJitArg MemRefJitArg MemRefSpec PointerJitArg TorchTensorJitArg convert_to_jit_arguments
            from_c_void_p is_type_param_annotation resolve_signature torch_dtype_to_mlir_type
        """,
        "flydsl.compiler.jit_executor": """
            CallState GpuJitModule build_abi_storage
        """,
        "flydsl.compiler.jit_function": """
            CallState CompiledFunction FileLock FlyDSLCompileError PipelineConfig
        """,
        "flydsl.compiler.kernel_function": """
            effective_fastmath_hint func_def_location
            DimType DimValueType FuncLocationTracker create_caller_location create_file_location create_gpu_func
            create_gpu_module get_gpu_module_body get_source_location merge_compile_hints
        """,
        "flydsl.compiler.backends.base": """
            AOTRuntimeConfig
        """,
        "flydsl.expr.utils": """
            lazy_classattr
        """,
        "flydsl.utils.env": """
            AutotuneEnvManager CompileEnvManager DebugEnvManager E EnvManagerMeta EnvOption KtraceEnvManager OptBool
            OptInt OptList OptStr RuntimeEnvManager T ktrace
        """,
        "flydsl.expr.meta": """
            capture_user_location dsl_wrap_result file_location tracing_context tracing_option
        """,
        "flydsl.expr.utils.arith": """
            arith_const current_fastmath element_type fp_to_fp fp_to_int int_to_int is_float_type is_integer_like_type
            is_narrow_float_type recast_type resolve_fastmath
        """,
        "flydsl.expr": """
            Basis BasisType CoordSwizzle Empty RoundingMode extern ktrace
            AddressSpace Align Arena ArithValue Array BFloat16 Boolean CachePolicy ComposedLayout ComposedLayoutType
            Constexpr CoordSwizzleType CoordTensorType CopyAtom CopyAtomType CopyOpUniversalAtomicType
            CopyOpUniversalCopyType Float Float16 Float32 Float4E2M1FN Float64 Float6E2M3FN Float6E3M2FN Float8E4M3
            Float8E4M3B11FNUZ Float8E4M3FN Float8E4M3FNUZ Float8E5M2 Float8E8M0FNU GemmTraversalOrder Index Int128
            Int16 Int32 Int4 Int64 Int8 IntTuple IntTupleType Layout LayoutType MemRefType MmaAtomType
            MmaOpUniversalFMAType MmaOperand Numeric Pointer PointerType SharedAllocator Storage Stream Struct
            Swizzle SwizzleType T Tensor ThrCopy ThrMma Tile TileType TiledCopy TiledCopyType TiledMma TiledMmaType
            Tuple3D Types Uint128 Uint16 Uint32 Uint64 Uint8 Union UniversalAtomic UniversalAtomicAdd
            UniversalAtomicAnd UniversalAtomicDec UniversalAtomicInc UniversalAtomicMax UniversalAtomicMin
            UniversalAtomicOr UniversalCopy UniversalCopy128b UniversalCopy16b UniversalCopy32b UniversalCopy64b
            UniversalCopy8b UniversalFMA Vector absf absi acos acosh add_offset andi append apply_swizzle arith
            as_dsl_value as_ir_value asin asinh assume atan atan2 atanh atom_set_value barrier block_dim block_id
            block_idx blocked_product cbrt ceil ceil_div clampf cmpf cmpi coalesce complement composed_get_inner
            composed_get_offset composed_get_outer composition const_expr constant constant_vector coprofile copy
            copy_atom_call copysign cos cosh coshape cosize crd2idx ctlz ctpop cttz default_f8_type depth derived
            dice elem_less empty_like equal erf erfc exp exp2 expm1 flat_divide flat_product floor fma fpowi full
            full_like gemm get get_ get_1d_coord get_dyn_shared get_flat_coord get_iter get_layout get_leaves
            get_scalar get_shape get_stride gpu grid_dim group has_none idx2crd index index_cast int_to_fp
            int_tuple_add int_tuple_div int_tuple_mod int_tuple_mul int_tuple_product int_tuple_product_each
            int_tuple_product_like int_tuple_sub inttoptr ipowi is_composite_type is_generic_address_space
            is_specializable_struct_type is_struct_type is_target_address_space isfinite isinf isnan isnormal
            lds_space left_inverse log log10 log1p log2 logical_divide logical_product make_composed_layout
            make_coord make_copy_atom make_fragment_layout_like make_fragment_like make_identity_layout
            make_int_tuple make_layout make_layout_like make_layout_tv make_mma_atom make_ordered_layout make_ptr
            make_rmem_tensor make_shape make_stride make_tile make_tiled_copy make_tiled_copy_A make_tiled_copy_B
            make_tiled_copy_C make_tiled_copy_tv make_tiled_mma make_view math memref_alloca memref_load
            memref_load_vec memref_store memref_store_vec meta mma_atom_call mma_make_fragment numeric ones_like powf
            prepend primitive printf ptr_load ptr_store ptrtoint raked_product range_constexpr rank recast_iter
            recast_layout right_inverse round roundeven rsqrt select shape_div shli sin sincos sinh sitofp size slice
            smem_space sqrt static struct take tan tanh thread_id thread_idx tile_to_shape tiled_copy_partition_dst
            tiled_copy_partition_src tiled_copy_retile tiled_divide tiled_mma_partition tiled_mma_partition_shape
            tiled_product trunc trunc_f typing union unwrap utils vector xori zeros_like zipped_divide zipped_product
        """,
        "flydsl.expr.gpu": """
            SharedAllocator barrier block_dim block_id block_idx grid_dim lds_space smem_space thread_id thread_idx
        """,
        "flydsl.expr.struct": """
            CompositeKind CompositeMeta FieldDef
            Empty
            Align Arena Array Storage Struct Union is_composite_type is_specializable_struct_type is_struct_type struct
            union
        """,
        "flydsl.utils.smem_allocator": """
            SmemAllocator SmemPtr check_smem_capacity get_index_value get_mlir_type_align get_mlir_type_size
            get_op_result_or_value lds_space
        """,
        "flydsl.expr.numeric": """
            ArithValue BFloat16 Boolean Float Float16 Float32 Float4E2M1FN Float64 Float6E2M3FN Float6E3M2FN
            Float8E4M3 Float8E4M3B11FNUZ Float8E4M3FN Float8E4M3FNUZ Float8E5M2 Float8E8M0FNU Index Int128 Int16
            Int32 Int4 Int64 Int8 Integer Numeric NumericMeta Uint128 Uint16 Uint32 Uint64 Uint8 arith_const
            as_numeric fp_to_fp fp_to_int int_to_fp int_to_int is_float_type
        """,
        "flydsl.expr.arith": """
            RoundingMode
            ArithValue andi cmpf cmpi constant constant_vector index index_cast int_to_fp shli sitofp trunc_f unwrap
            xori
        """,
        "flydsl.expr.vector": """
            CombiningKind IteratorType PrintPunctuation Vector bitcast broadcast compressstore constant_mask contract
            create_mask deinterleave empty_like expandload extract extract_strided_slice fma from_elements full
            full_like gather insert insert_strided_slice interleave load load_op mask maskedload maskedstore
            multi_reduction ones_like outerproduct print_ reduction register_attribute_builder scalable_extract
            scalable_insert scan scatter shape_cast shuffle step store to_elements traced_op transfer_read
            transfer_write transpose type_cast vscale yield_ zeros_like
        """,
        "flydsl.expr.derived": """
            ThrCopy ThrMma make_layout_tv make_rmem_tensor make_tiled_copy make_tiled_copy_A make_tiled_copy_B
            make_tiled_copy_C make_tiled_copy_tv
        """,
        "flydsl.expr.typing": """
            BuiltinDslType
            Basis CoordSwizzle
            BFloat16 Boolean ComposedLayout Constexpr CopyAtom Float Float16 Float32 Float4E2M1FN Float64
            Float6E2M3FN Float6E3M2FN Float8E4M3 Float8E4M3B11FNUZ Float8E4M3FN Float8E4M3FNUZ Float8E5M2
            Float8E8M0FNU Index Int128 Int16 Int32 Int4 Int64 Int8 IntTuple Layout Numeric Pointer Stream Swizzle T
            Tensor Tile TiledCopy TiledMma Tuple3D Types Uint128 Uint16 Uint32 Uint64 Uint8 Vector as_dsl_value
            as_ir_value default_f8_type empty_like full full_like is_generic_address_space is_target_address_space
            ones_like zeros_like
        """,
        "flydsl.expr.math": """
            dsl_math_wrap_result
            absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil clampf copysign cos cosh ctlz ctpop cttz erf
            erfc exp exp2 expm1 floor fma fpowi ipowi isfinite isinf isnan isnormal log log10 log1p log2 powf round
            roundeven rsqrt sin sincos sinh sqrt tan tanh trunc
        """,
        "flydsl.expr.buffer_ops": """
            BufferResourceDescriptor buffer_load buffer_store create_buffer_resource create_buffer_resource_from_addr
            create_llvm_ptr extract_base_index get_element_ptr
        """,
        "flydsl.expr.rocdl.cdna4": """
            cvt_sr_f32_to_bf16
            CopyOpCDNA4LdsReadTransposeType LDSReadTrans LDSReadTrans16_64b LDSReadTrans4_64b LDSReadTrans6_96b
            LDSReadTrans8_64b MFMA_Scale MmaOpCDNA4_MFMAScaleType
        """,
        "flydsl.expr.rocdl.cdna5": """
            TDM TensorLoad TensorStore WMMAScale make_tdm_atom make_tiled_tdm_atom tdm_partition
        """,
        "flydsl.expr.rocdl.cluster": """
            CLUSTER_BARRIER_ID CLUSTER_WAIT_ALL cluster_barrier cluster_signal_once_per_wg cluster_wait
            compute_cluster_position compute_mcast_masks is_wave_leader
        """,
        "flydsl.expr.rocdl.tdm_ops": """
            TDMDescriptor2D TDMGatherDescriptor add_addr_with_carry advance_tdm_descriptor compute_padding_encoding
            compute_warp_distribution l2_prefetch_tile make_tensor_descriptor_2d make_tensor_gather_descriptor
            make_tensor_gather_dgroup0 tensor_load_2d tensor_load_gather tensor_store_2d tensor_store_gather tensor_wait
            update_tensor_descriptor_2d_addr64 update_tensor_descriptor_2d_addr_lo
            update_tensor_descriptor_2d_addr_lo_hi update_tensor_descriptor_2d_lds_addr
            update_tensor_gather_descriptor_addr64 update_tensor_gather_descriptor_addr_lo
            update_tensor_gather_descriptor_addr_lo_hi
        """,
        "flydsl.expr.rocdl.universal": """
            TDM WMMAScale advance_tdm_atom get_buffer_rsrc make_buffer_ptr make_tdm_atom s_waitcnt
        """,
        "flydsl.expr.rocdl": """
            SWMMAC TDM TensorLoad TensorStore WMMA_RDNA3 advance_tdm_atom cdna5 experimental ktrace_emit make_tdm_atom
            cdna4 cluster inline_asm tdm_ops universal
            BufferAtomic BufferAtomicAdd BufferAtomicMax BufferAtomicMin BufferAtomicPkAdd BufferCopy BufferCopy128b
            BufferCopy16b BufferCopy32b BufferCopy64b BufferCopy8b BufferCopyLDS BufferCopyLDS128b BufferCopyLDS32b
            BufferCopyLDS64b CopyOpCDNA3BufferAtomicType CopyOpCDNA3BufferCopyLDSType CopyOpCDNA3BufferCopyType
            CvtPkRtz DsLoadTr16_B128 DsLoadTr4_B64 DsLoadTr6_B96 DsLoadTr8_B64 GlobalLoadTr4_B64 GlobalLoadTr6_B96
            GlobalLoadTr8_B128 GlobalLoadTr8_B64 IglpOpt Int16 Int32 Int64 MFMA MmaOpCDNA3_MFMAType
            MmaOpGFX11_WMMAType MmaOpGFX1250_WMMAType PointerType ROCDLCos ROCDLExp ROCDLExp2 ROCDLLog ROCDLRcp
            ROCDLRsq ROCDLSin ROCDLSqrt ROCDLTanh RawBufferAtomicCmpSwap RawPtrBufferAtomicCmpSwap SchedBarrier
            SchedGroupBarrier TargetAddressSpace Tensor WMMA WaveId asyncmark ballot barrier buffer_load_to_lds
            cluster_id_x cluster_id_y cluster_id_z cluster_load_async_to_lds cluster_load_async_to_lds_b128
            cluster_load_async_to_lds_b32 cluster_load_async_to_lds_b64 cluster_load_async_to_lds_b8
            cluster_workgroup_id_x cluster_workgroup_id_y cluster_workgroup_id_z cos cosize cvt_f32_bf8 cvt_f32_fp8
            cvt_off_f32_i4 cvt_pk_bf16_f32 cvt_pk_bf8_f32 cvt_pk_f32_bf8 cvt_pk_f32_fp8 cvt_pk_fp8_f32 cvt_pkrtz
            cvt_scale_pk16_bf16_bf6 cvt_scale_pk16_bf16_fp6 cvt_scale_pk16_f16_bf6 cvt_scale_pk16_f16_fp6
            cvt_scale_pk16_f32_bf6 cvt_scale_pk16_f32_fp6 cvt_scale_pk8_bf16_bf8 cvt_scale_pk8_bf16_fp4
            cvt_scale_pk8_bf16_fp8 cvt_scale_pk8_f16_bf8 cvt_scale_pk8_f16_fp4 cvt_scale_pk8_f16_fp8
            cvt_scale_pk8_f32_bf8 cvt_scale_pk8_f32_fp4 cvt_scale_pk8_f32_fp8 cvt_scalef32_2xpk16_bf6_f32
            cvt_scalef32_2xpk16_fp6_f32 cvt_scalef32_f16_bf8 cvt_scalef32_f16_fp8 cvt_scalef32_f32_bf8
            cvt_scalef32_f32_fp8 cvt_scalef32_pk16_bf6_bf16 cvt_scalef32_pk16_bf6_f16 cvt_scalef32_pk16_bf6_f32
            cvt_scalef32_pk16_fp6_bf16 cvt_scalef32_pk16_fp6_f16 cvt_scalef32_pk16_fp6_f32 cvt_scalef32_pk32_bf16_bf6
            cvt_scalef32_pk32_bf16_fp6 cvt_scalef32_pk32_bf6_bf16 cvt_scalef32_pk32_bf6_f16 cvt_scalef32_pk32_f16_bf6
            cvt_scalef32_pk32_f16_fp6 cvt_scalef32_pk32_f32_bf6 cvt_scalef32_pk32_f32_fp6 cvt_scalef32_pk32_fp6_bf16
            cvt_scalef32_pk32_fp6_f16 cvt_scalef32_pk8_bf8_bf16 cvt_scalef32_pk8_bf8_f16 cvt_scalef32_pk8_bf8_f32
            cvt_scalef32_pk8_fp4_bf16 cvt_scalef32_pk8_fp4_f16 cvt_scalef32_pk8_fp4_f32 cvt_scalef32_pk8_fp8_bf16
            cvt_scalef32_pk8_fp8_f16 cvt_scalef32_pk8_fp8_f32 cvt_scalef32_pk_bf16_bf8 cvt_scalef32_pk_bf16_fp4
            cvt_scalef32_pk_bf16_fp8 cvt_scalef32_pk_bf8_bf16 cvt_scalef32_pk_bf8_f16 cvt_scalef32_pk_bf8_f32
            cvt_scalef32_pk_f16_bf8 cvt_scalef32_pk_f16_fp4 cvt_scalef32_pk_f16_fp8 cvt_scalef32_pk_f32_bf8
            cvt_scalef32_pk_f32_fp4 cvt_scalef32_pk_f32_fp8 cvt_scalef32_pk_fp4_bf16 cvt_scalef32_pk_fp4_f16
            cvt_scalef32_pk_fp4_f32 cvt_scalef32_pk_fp8_bf16 cvt_scalef32_pk_fp8_f16 cvt_scalef32_pk_fp8_f32
            cvt_scalef32_sr_bf8_bf16 cvt_scalef32_sr_bf8_f16 cvt_scalef32_sr_bf8_f32 cvt_scalef32_sr_fp8_bf16
            cvt_scalef32_sr_fp8_f16 cvt_scalef32_sr_fp8_f32 cvt_scalef32_sr_pk16_bf6_bf16
            cvt_scalef32_sr_pk16_bf6_f16 cvt_scalef32_sr_pk16_bf6_f32 cvt_scalef32_sr_pk16_fp6_bf16
            cvt_scalef32_sr_pk16_fp6_f16 cvt_scalef32_sr_pk16_fp6_f32 cvt_scalef32_sr_pk32_bf6_bf16
            cvt_scalef32_sr_pk32_bf6_f16 cvt_scalef32_sr_pk32_bf6_f32 cvt_scalef32_sr_pk32_fp6_bf16
            cvt_scalef32_sr_pk32_fp6_f16 cvt_scalef32_sr_pk32_fp6_f32 cvt_scalef32_sr_pk8_bf8_bf16
            cvt_scalef32_sr_pk8_bf8_f16 cvt_scalef32_sr_pk8_bf8_f32 cvt_scalef32_sr_pk8_fp4_bf16
            cvt_scalef32_sr_pk8_fp4_f16 cvt_scalef32_sr_pk8_fp4_f32 cvt_scalef32_sr_pk8_fp8_bf16
            cvt_scalef32_sr_pk8_fp8_f16 cvt_scalef32_sr_pk8_fp8_f32 cvt_scalef32_sr_pk_fp4_bf16
            cvt_scalef32_sr_pk_fp4_f16 cvt_scalef32_sr_pk_fp4_f32 cvt_sr_bf8_f32 cvt_sr_fp8_f32 disable_xdl_arb_stall
            ds_atomic_async_barrier_arrive_b64 ds_atomic_barrier_arrive_rtn_b64 ds_bpermute ds_load_tr16_b128
            ds_load_tr4_b64 ds_load_tr6_b96 ds_load_tr8_b64 ds_read_tr16_b64 ds_read_tr16_b64_ ds_read_tr4_b64
            ds_read_tr4_b64_ ds_read_tr6_b96 ds_read_tr6_b96_ ds_read_tr8_b64 ds_read_tr8_b64_ ds_swizzle exp exp2
            flat_prefetch fmed3 get_iter get_layout get_scalar global_load_async_lds global_load_async_to_lds_b128
            global_load_async_to_lds_b32 global_load_async_to_lds_b64 global_load_async_to_lds_b8 global_load_lds
            global_load_tr4_b64 global_load_tr6_b96 global_load_tr_b128 global_load_tr_b64 global_prefetch iglp_opt
            lds_transpose_load load_async_to_lds load_to_lds log make_buffer_rsrc make_buffer_tensor make_ptr
            make_view mbcnt_hi mbcnt_lo mfma_f32_16x16x16bf16_1k mfma_f32_16x16x16bf16_1k_ mfma_f32_16x16x16f16
            mfma_f32_16x16x16f16_ mfma_f32_16x16x1f32 mfma_f32_16x16x1f32_ mfma_f32_16x16x2bf16 mfma_f32_16x16x2bf16_
            mfma_f32_16x16x32_bf16 mfma_f32_16x16x32_bf16_ mfma_f32_16x16x32_bf8_bf8 mfma_f32_16x16x32_bf8_bf8_
            mfma_f32_16x16x32_bf8_fp8 mfma_f32_16x16x32_bf8_fp8_ mfma_f32_16x16x32_f16 mfma_f32_16x16x32_f16_
            mfma_f32_16x16x32_fp8_bf8 mfma_f32_16x16x32_fp8_bf8_ mfma_f32_16x16x32_fp8_fp8 mfma_f32_16x16x32_fp8_fp8_
            mfma_f32_16x16x4bf16_1k mfma_f32_16x16x4bf16_1k_ mfma_f32_16x16x4f16 mfma_f32_16x16x4f16_
            mfma_f32_16x16x4f32 mfma_f32_16x16x4f32_ mfma_f32_16x16x8_xf32 mfma_f32_16x16x8_xf32_
            mfma_f32_16x16x8bf16 mfma_f32_16x16x8bf16_ mfma_f32_32x32x16_bf16 mfma_f32_32x32x16_bf16_
            mfma_f32_32x32x16_bf8_bf8 mfma_f32_32x32x16_bf8_bf8_ mfma_f32_32x32x16_bf8_fp8 mfma_f32_32x32x16_bf8_fp8_
            mfma_f32_32x32x16_f16 mfma_f32_32x32x16_f16_ mfma_f32_32x32x16_fp8_bf8 mfma_f32_32x32x16_fp8_bf8_
            mfma_f32_32x32x16_fp8_fp8 mfma_f32_32x32x16_fp8_fp8_ mfma_f32_32x32x1f32 mfma_f32_32x32x1f32_
            mfma_f32_32x32x2bf16 mfma_f32_32x32x2bf16_ mfma_f32_32x32x2f32 mfma_f32_32x32x2f32_ mfma_f32_32x32x4_xf32
            mfma_f32_32x32x4_xf32_ mfma_f32_32x32x4bf16 mfma_f32_32x32x4bf16_ mfma_f32_32x32x4bf16_1k
            mfma_f32_32x32x4bf16_1k_ mfma_f32_32x32x4f16 mfma_f32_32x32x4f16_ mfma_f32_32x32x8bf16_1k
            mfma_f32_32x32x8bf16_1k_ mfma_f32_32x32x8f16 mfma_f32_32x32x8f16_ mfma_f32_4x4x1f32 mfma_f32_4x4x1f32_
            mfma_f32_4x4x2bf16 mfma_f32_4x4x2bf16_ mfma_f32_4x4x4bf16_1k mfma_f32_4x4x4bf16_1k_ mfma_f32_4x4x4f16
            mfma_f32_4x4x4f16_ mfma_f64_16x16x4f64 mfma_f64_16x16x4f64_ mfma_f64_4x4x4f64 mfma_f64_4x4x4f64_
            mfma_i32_16x16x16i8 mfma_i32_16x16x16i8_ mfma_i32_16x16x32_i8 mfma_i32_16x16x32_i8_ mfma_i32_16x16x4i8
            mfma_i32_16x16x4i8_ mfma_i32_16x16x64_i8 mfma_i32_16x16x64_i8_ mfma_i32_32x32x16_i8 mfma_i32_32x32x16_i8_
            mfma_i32_32x32x32_i8 mfma_i32_32x32x32_i8_ mfma_i32_32x32x4i8 mfma_i32_32x32x4i8_ mfma_i32_32x32x8i8
            mfma_i32_32x32x8i8_ mfma_i32_4x4x4i8 mfma_i32_4x4x4i8_ mfma_scale_f32_16x16x128_f8f6f4
            mfma_scale_f32_16x16x128_f8f6f4_ mfma_scale_f32_32x32x64_f8f6f4 mfma_scale_f32_32x32x64_f8f6f4_ perm_b32
            permlane16_swap permlane32_swap permlanex16 raw_buffer_atomic_cmpswap raw_buffer_atomic_fadd
            raw_buffer_atomic_fmax raw_buffer_atomic_smax raw_buffer_atomic_umin raw_buffer_load raw_buffer_store
            raw_ptr_buffer_atomic_cmpswap raw_ptr_buffer_atomic_fadd raw_ptr_buffer_atomic_fmax
            raw_ptr_buffer_atomic_smax raw_ptr_buffer_atomic_umin raw_ptr_buffer_load raw_ptr_buffer_load_async_lds
            raw_ptr_buffer_load_lds raw_ptr_buffer_store rcp readfirstlane readlane rsq s_barrier s_barrier_init
            s_barrier_join s_barrier_leave s_barrier_signal s_barrier_signal_isfirst s_barrier_signal_var
            s_barrier_wait s_get_barrier_state s_get_named_barrier_state s_nop s_prefetch_inst_burst s_setprio s_sleep
            s_wait_asynccnt
            s_wait_dscnt s_wait_expcnt s_wait_loadcnt s_wait_storecnt s_wait_tensorcnt s_waitcnt s_wakeup_barrier
            sched_barrier sched_dsrd sched_dswr sched_group_barrier sched_mfma sched_vmem sin
            smfmac_f32_16x16x128_bf8_bf8 smfmac_f32_16x16x128_bf8_bf8_ smfmac_f32_16x16x128_bf8_fp8
            smfmac_f32_16x16x128_bf8_fp8_ smfmac_f32_16x16x128_fp8_bf8 smfmac_f32_16x16x128_fp8_bf8_
            smfmac_f32_16x16x128_fp8_fp8 smfmac_f32_16x16x128_fp8_fp8_ smfmac_f32_16x16x32_bf16
            smfmac_f32_16x16x32_bf16_ smfmac_f32_16x16x32_f16 smfmac_f32_16x16x32_f16_ smfmac_f32_16x16x64_bf16
            smfmac_f32_16x16x64_bf16_ smfmac_f32_16x16x64_bf8_bf8 smfmac_f32_16x16x64_bf8_bf8_
            smfmac_f32_16x16x64_bf8_fp8 smfmac_f32_16x16x64_bf8_fp8_ smfmac_f32_16x16x64_f16 smfmac_f32_16x16x64_f16_
            smfmac_f32_16x16x64_fp8_bf8 smfmac_f32_16x16x64_fp8_bf8_ smfmac_f32_16x16x64_fp8_fp8
            smfmac_f32_16x16x64_fp8_fp8_ smfmac_f32_32x32x16_bf16 smfmac_f32_32x32x16_bf16_ smfmac_f32_32x32x16_f16
            smfmac_f32_32x32x16_f16_ smfmac_f32_32x32x32_bf16 smfmac_f32_32x32x32_bf16_ smfmac_f32_32x32x32_bf8_bf8
            smfmac_f32_32x32x32_bf8_bf8_ smfmac_f32_32x32x32_bf8_fp8 smfmac_f32_32x32x32_bf8_fp8_
            smfmac_f32_32x32x32_f16 smfmac_f32_32x32x32_f16_ smfmac_f32_32x32x32_fp8_bf8 smfmac_f32_32x32x32_fp8_bf8_
            smfmac_f32_32x32x32_fp8_fp8 smfmac_f32_32x32x32_fp8_fp8_ smfmac_f32_32x32x64_bf8_bf8
            smfmac_f32_32x32x64_bf8_bf8_ smfmac_f32_32x32x64_bf8_fp8 smfmac_f32_32x32x64_bf8_fp8_
            smfmac_f32_32x32x64_fp8_bf8 smfmac_f32_32x32x64_fp8_bf8_ smfmac_f32_32x32x64_fp8_fp8
            smfmac_f32_32x32x64_fp8_fp8_ smfmac_i32_16x16x128_i8 smfmac_i32_16x16x128_i8_ smfmac_i32_16x16x64_i8
            smfmac_i32_16x16x64_i8_ smfmac_i32_32x32x32_i8 smfmac_i32_32x32x32_i8_ smfmac_i32_32x32x64_i8
            smfmac_i32_32x32x64_i8_ sqrt swmmac_bf16_16x16x32_bf16 swmmac_bf16_16x16x32_bf16_
            swmmac_bf16_16x16x64_bf16 swmmac_bf16_16x16x64_bf16_ swmmac_bf16f32_16x16x64_bf16
            swmmac_bf16f32_16x16x64_bf16_ swmmac_f16_16x16x128_bf8_bf8 swmmac_f16_16x16x128_bf8_bf8_
            swmmac_f16_16x16x128_bf8_fp8 swmmac_f16_16x16x128_bf8_fp8_ swmmac_f16_16x16x128_fp8_bf8
            swmmac_f16_16x16x128_fp8_bf8_ swmmac_f16_16x16x128_fp8_fp8 swmmac_f16_16x16x128_fp8_fp8_
            swmmac_f16_16x16x32_f16 swmmac_f16_16x16x32_f16_ swmmac_f16_16x16x64_f16 swmmac_f16_16x16x64_f16_
            swmmac_f32_16x16x128_bf8_bf8 swmmac_f32_16x16x128_bf8_bf8_ swmmac_f32_16x16x128_bf8_fp8
            swmmac_f32_16x16x128_bf8_fp8_ swmmac_f32_16x16x128_fp8_bf8 swmmac_f32_16x16x128_fp8_bf8_
            swmmac_f32_16x16x128_fp8_fp8 swmmac_f32_16x16x128_fp8_fp8_ swmmac_f32_16x16x32_bf16
            swmmac_f32_16x16x32_bf16_ swmmac_f32_16x16x32_bf8_bf8 swmmac_f32_16x16x32_bf8_bf8_
            swmmac_f32_16x16x32_bf8_fp8 swmmac_f32_16x16x32_bf8_fp8_ swmmac_f32_16x16x32_f16 swmmac_f32_16x16x32_f16_
            swmmac_f32_16x16x32_fp8_bf8 swmmac_f32_16x16x32_fp8_bf8_ swmmac_f32_16x16x32_fp8_fp8
            swmmac_f32_16x16x32_fp8_fp8_ swmmac_f32_16x16x64_bf16 swmmac_f32_16x16x64_bf16_ swmmac_f32_16x16x64_f16
            swmmac_f32_16x16x64_f16_ swmmac_i32_16x16x128_iu8 swmmac_i32_16x16x128_iu8_ swmmac_i32_16x16x32_iu4
            swmmac_i32_16x16x32_iu4_ swmmac_i32_16x16x32_iu8 swmmac_i32_16x16x32_iu8_ swmmac_i32_16x16x64_iu4
            swmmac_i32_16x16x64_iu4_ tanh tensor_load_to_lds tensor_store_from_lds traced_op update_dpp
            wait_asyncmark wave_id wavefrontsize wmma_bf16_16x16x16_bf16 wmma_bf16_16x16x16_bf16_
            wmma_bf16_16x16x32_bf16 wmma_bf16_16x16x32_bf16_ wmma_bf16f32_16x16x32_bf16 wmma_bf16f32_16x16x32_bf16_
            wmma_f16_16x16x128_bf8_bf8 wmma_f16_16x16x128_bf8_bf8_ wmma_f16_16x16x128_bf8_fp8
            wmma_f16_16x16x128_bf8_fp8_ wmma_f16_16x16x128_fp8_bf8 wmma_f16_16x16x128_fp8_bf8_
            wmma_f16_16x16x128_fp8_fp8 wmma_f16_16x16x128_fp8_fp8_ wmma_f16_16x16x16_f16 wmma_f16_16x16x16_f16_
            wmma_f16_16x16x32_f16 wmma_f16_16x16x32_f16_ wmma_f16_16x16x64_bf8_bf8 wmma_f16_16x16x64_bf8_bf8_
            wmma_f16_16x16x64_bf8_fp8 wmma_f16_16x16x64_bf8_fp8_ wmma_f16_16x16x64_fp8_bf8 wmma_f16_16x16x64_fp8_bf8_
            wmma_f16_16x16x64_fp8_fp8 wmma_f16_16x16x64_fp8_fp8_ wmma_f32_16x16x128_bf8_bf8
            wmma_f32_16x16x128_bf8_bf8_ wmma_f32_16x16x128_bf8_fp8 wmma_f32_16x16x128_bf8_fp8_
            wmma_f32_16x16x128_fp8_bf8 wmma_f32_16x16x128_fp8_bf8_ wmma_f32_16x16x128_fp8_fp8
            wmma_f32_16x16x128_fp8_fp8_ wmma_f32_16x16x16_bf16 wmma_f32_16x16x16_bf16_ wmma_f32_16x16x16_bf8_bf8
            wmma_f32_16x16x16_bf8_bf8_ wmma_f32_16x16x16_bf8_fp8 wmma_f32_16x16x16_bf8_fp8_ wmma_f32_16x16x16_f16
            wmma_f32_16x16x16_f16_ wmma_f32_16x16x16_fp8_bf8 wmma_f32_16x16x16_fp8_bf8_ wmma_f32_16x16x16_fp8_fp8
            wmma_f32_16x16x16_fp8_fp8_ wmma_f32_16x16x32_bf16 wmma_f32_16x16x32_bf16_ wmma_f32_16x16x32_f16
            wmma_f32_16x16x32_f16_ wmma_f32_16x16x4_f32 wmma_f32_16x16x4_f32_ wmma_f32_16x16x64_bf8_bf8
            wmma_f32_16x16x64_bf8_bf8_ wmma_f32_16x16x64_bf8_fp8 wmma_f32_16x16x64_bf8_fp8_ wmma_f32_16x16x64_fp8_bf8
            wmma_f32_16x16x64_fp8_bf8_ wmma_f32_16x16x64_fp8_fp8 wmma_f32_16x16x64_fp8_fp8_ wmma_i32_16x16x16_iu4
            wmma_i32_16x16x16_iu4_ wmma_i32_16x16x16_iu8 wmma_i32_16x16x16_iu8_ wmma_i32_16x16x32_iu4
            wmma_i32_16x16x32_iu4_ wmma_i32_16x16x64_iu8 wmma_i32_16x16x64_iu8_ wmma_scale16_f32_16x16x128_f8f6f4
            wmma_scale16_f32_16x16x128_f8f6f4_ wmma_scale16_f32_32x16x128_f4 wmma_scale16_f32_32x16x128_f4_
            wmma_scale_f32_16x16x128_f8f6f4 wmma_scale_f32_16x16x128_f8f6f4_ wmma_scale_f32_32x16x128_f4
            wmma_scale_f32_32x16x128_f4_ workgroup_id_x workgroup_id_y workgroup_id_z workitem_id_x workitem_id_y
            workitem_id_z
        """,
        "flydsl.extension.coop": """
            block universal warp
            BlockAdjacentDifference BlockDiscontinuity BlockExchange BlockExchangeAlgorithm BlockHistogram
            BlockHistogramAlgorithm BlockLoad BlockLoadAlgorithm BlockMergeSort BlockMergeSortAlgorithm
            BlockRadixRank BlockRadixRankAlgorithm BlockRadixSort BlockRadixSortAlgorithm BlockReduce
            BlockReduceAlgorithm BlockRunLengthDecode BlockRunLengthDecodeAlgorithm BlockScan BlockScanAlgorithm
            BlockShuffle BlockShuffleAlgorithm BlockStore BlockStoreAlgorithm BlockTopK BlockTopKAlgorithm
            WarpBitonicSort WarpExchange WarpExchangeAlgorithm WarpLoad WarpLoadAlgorithm WarpMergeSort WarpReduce
            WarpReduceBatched WarpScan WarpStore WarpStoreAlgorithm warp_bitonic_sort warp_broadcast
            warp_exclusive_scan warp_head_segmented_reduce warp_inclusive_scan warp_merge_sort warp_reduce
            warp_reduce_batched warp_reduce_batched_to_blocked warp_reduce_batched_to_striped warp_scan
            warp_scan_with_aggregate warp_tail_segmented_reduce
        """,
    }.items()
}
FLYDSL_NAMES["flydsl.expr.primitive"] = FLYDSL_NAMES["flydsl.expr"] | frozenset(
    ["coerce_int_tuple_args", "is_profile_congruent", "is_profile_weakly_congruent", "to_llvm_ptr"]
)


def unknown_name(
    module: str, namespace: Mapping[str, Any], elsewhere: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], Any]:
    """Make a module's `__getattr__`, which explains why the module does not have a name.

    module: its dotted name. namespace: its globals, for names that come close. elsewhere: names that programs import
    from this module, too, and the modules that define them, which are imported when one is asked for.
    """

    def __getattr__(name: str) -> Any:
        if name in elsewhere:
            return getattr(import_module(elsewhere[name]), name)
        if (found := borrowed(module, name)) is not None:
            return found()
        if name.startswith("_") and name not in OTHER_NAMES:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        shown = f"dir(...) of the module has the names of {module}"
        if name in FLYDSL_NAMES.get(module, ()):
            raise name_error(unsupported(f"{module}.{name}"), INSTEAD.get(name, shown))
        hint = OTHER_NAMES.get(name) or close_to(name, namespace) or shown
        raise name_error(f"module {module!r} has no attribute {name!r}", hint)

    return __getattr__


def close_to(name: str, namespace: Mapping[str, Any]) -> str:
    """The names of a namespace that a misspelt one may mean, as a hint; empty if there are none.

    Modules and private names are not among them.
    """
    public = [n for n, value in namespace.items() if not n.startswith("_") and not isinstance(value, ModuleType)]
    spelt: dict[str, list[str]] = {}
    for known in public:
        spelt.setdefault(known.lower().replace("_", ""), []).append(known)
    close = difflib.get_close_matches(name.lower().replace("_", ""), spelt, n=3, cutoff=0.75)
    found = [known for key in close for known in spelt[key]][:3]
    return f"close to it: {', '.join(found)}" if found else ""


def public_names(namespace: Mapping[str, Any], modules: Collection[str]) -> list[str]:
    """The names that `dir` of a module shows: its public names, and of the modules among them only those given."""
    return sorted(
        name
        for name, value in namespace.items()
        if not name.startswith("_") and (name in modules or not isinstance(value, ModuleType))
    )
