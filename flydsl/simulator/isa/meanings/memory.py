"""Loads, stores and atomics: of LDS, buffers, global memory, flat addresses, scratch and scalar memory."""

_SPACE = r"(?P<space>buffer|global|flat|scratch|ds)"
_WIDE = r"(?P<size>dword(?:x\d+)?|b32|b64|b96|b128)"
_SMALL = r"(?P<size>[us]byte|[us]short|[iu]8|[iu]16)"
_OP = r"(?P<space>buffer|global|flat)_atomic"
_TYPE = r"(?P<type>[iuf]32|[iuf]64|b32|b64)"

_WHERE = "at the lane's address"
_OLD = "; the value before is D where it is returned"

_UPDATES = (
    (r"add(?:_x2|_[uf]\d+)?", "memory + data"),
    (r"sub(?:_x2|_u\d+)?", "memory - data"),
    (r"csub(?:_u32)?|sub_clamp_u32", "memory - data, but at least 0"),
    (r"cond_sub_u32", "memory - data where that is not below 0"),
    (r"rsub_u\d+", "data - memory"),
    (r"and(?:_x2|_b\d+)?", "memory & data"),
    (r"or(?:_x2|_b\d+)?", "memory | data"),
    (r"xor(?:_x2|_b\d+)?", "memory ^ data"),
    (r"mskor_b\d+", "(memory & ~first data) | second data"),
    (r"(?:swap|wrxchg|storexchg)(?:_x2|_b\d+)?", "data"),
    (
        r"(?:cmpswap|cmpst|cmpstore)(?:_x2|_[bf]\d+)?",
        "the new value where memory equals the compare value; else it stays",
    ),
    (r"(?:s|u|f)?min(?:_num)?(?:_x2|_[iuf]\d+)?", "the smaller of memory and data"),
    (r"(?:s|u|f)?max(?:_num)?(?:_x2|_[iuf]\d+)?", "the larger of memory and data"),
    (r"inc(?:_x2|_u\d+)?", "memory + 1, but 0 from data on"),
    (r"dec(?:_x2|_u\d+)?", "memory - 1, but data where memory is 0 or above data"),
    (r"pk_add_b?f16", "memory + data, for both halves"),
    (r"wrap_b32", "memory - first data where memory is at least that, else memory + second data"),
    (r"ordered_add_b64", "memory + data, in the order of waves"),
)

MEANINGS = (
    # scalar memory
    (r"s_(?:buffer_)?load_(?P<size>dword(?:x\d+)?|b\d+)", "D = {size} of memory, the same for the whole wave."),
    (r"s_(?:buffer_)?load_(?P<size>[iu]8|[iu]16)", "D = {size} of memory, extended, the same for the whole wave."),
    # straight into LDS
    (rf"{_SPACE}_load_lds_(?P<size>\w+)", "LDS = {size} of {space} for each lane, lane after lane from M0 on."),
    (r"(?:global|cluster)_load_async_to_lds_b(\d+)", "LDS = {0} bits of memory for each lane, while the wave goes on."),
    (r"global_store_async_from_lds_b(\d+)", "Memory = {0} bits of LDS for each lane, while the wave goes on."),
    (
        rf"{_SPACE}_load_monitor_(?P<size>b\d+)",
        "D = {size} of {space} at the lane's address, which s_monitor_sleep then watches.",
    ),
    (r"cluster_load_b(\d+)", "D = {0} bits of memory, for all workgroups of the cluster that M0 names."),
    (
        r"ds_atomic_(async_)?barrier_arrive(?:_rtn)?_b64",
        "Arrives at the barrier that lies in LDS at the address; async: when the copies before it have arrived.",
    ),
    (r"tensor_load_to_lds(?:_d2)?", "LDS = a tile of a tensor that the descriptors in S0, S1 ... describe."),
    (r"tensor_store_from_lds(?:_d2)?", "A tile of a tensor = LDS, as the descriptors in S0, S1 ... describe."),
    # transposing loads
    (
        r"ds_(?:read_b\d+_tr_b(\d+)|load_tr(\d+)_b\d+)",
        "Lanes read LDS together, and each gets a column of elements of {0}{1} bits where the addresses name rows.",
    ),
    (
        r"global_load_tr(\d+)_b\d+",
        "Lanes read together, and each gets a column of elements of {0} bits where the addresses name rows.",
    ),
    (r"global_load_tr_b64", "Lanes read together, and each gets a column of bytes where the addresses name rows."),
    (
        r"global_load_tr_b128",
        "Lanes read together, and each gets a column of elements of 16 bits where the addresses name rows.",
    ),
    (
        r"(?:global|flat)_load_monitor_(?P<size>b\d+)",
        f"D = {{size}} of memory {_WHERE}, whose cache line s_monitor_sleep then watches.",
    ),
    (r"cluster_load_(?P<size>b\d+)", f"D = {{size}} of memory {_WHERE}, read once for the workgroups of a cluster."),
    # blocks
    (r"(global|scratch)_load_block", "The registers from D on that the bits of M0 name = their dwords of {0} memory."),
    (r"(global|scratch)_store_block", "The dwords of {0} memory that the bits of M0 name = their registers."),
    # loads
    (rf"{_SPACE}_(?:load|read)_{_WIDE}", f"D = {{size}} of {{space}} {_WHERE}."),
    (rf"{_SPACE}_(?:load|read)_{_SMALL}", f"D = {{size}} of {{space}} {_WHERE}, extended to 32 bits."),
    (
        rf"{_SPACE}_(?:load|read)_(?:(?:\w?(?:byte|short)|[iu]8|[iu]16)_d16|d16_[biu]\d+)",
        f"The lower half of D = a byte or two of {{space}} {_WHERE}; its upper half stays.",
    ),
    (
        rf"{_SPACE}_(?:load|read)_(?:(?:\w?(?:byte|short)|[iu]8|[iu]16)_d16_hi|d16_hi_[biu]\d+)",
        f"The upper half of D = a byte or two of {{space}} {_WHERE}; its lower half stays.",
    ),
    (
        r"ds_(?:read2|load_2addr)_b(\d+)",
        "D = twice {0} bits of LDS: at the address + offset0 and + offset1, counted in elements.",
    ),
    (
        r"ds_(?:read2st64|load_2addr_stride64)_b(\d+)",
        "D = twice {0} bits of LDS: at the address + offset0 and + offset1, counted in 64 elements.",
    ),
    (rf"{_SPACE}_(?:load|read)_addtid_b32", "D = 4 bytes of {space} at M0 + the offset + 4 * the lane."),
    # stores
    (rf"{_SPACE}_(?:store|write)_{_WIDE}", f"{{size}} of {{space}} {_WHERE} = data."),
    (rf"{_SPACE}_(?:store|write)_(?:byte|b8)", f"A byte of {{space}} {_WHERE} = the lowest of data."),
    (rf"{_SPACE}_(?:store|write)_(?:short|b16)", f"2 bytes of {{space}} {_WHERE} = the lower half of data."),
    (
        rf"{_SPACE}_(?:store|write)_(?:(?:byte|short|b8|b16)_d16_hi|d16_hi_b\d+)",
        f"A byte or two of {{space}} {_WHERE} = the lowest of the upper half of data.",
    ),
    (
        r"ds_(?:write2|store_2addr)_b(\d+)",
        "Twice {0} bits of LDS = data: at the address + offset0 and + offset1, counted in elements.",
    ),
    (
        r"ds_(?:write2st64|store_2addr_stride64)_b(\d+)",
        "Twice {0} bits of LDS = data: at the address + offset0 and + offset1, counted in 64 elements.",
    ),
    (rf"{_SPACE}_(?:store|write)_addtid_b32", "4 bytes of {space} at M0 + the offset + 4 * the lane = data."),
    # atomics
    *((rf"{_OP}_(?:{update})", f"At once: {{space}} {_WHERE} = {formula}{_OLD}.") for update, formula in _UPDATES),
    *((rf"ds_(?:{update})", f"At once: LDS {_WHERE} = {formula}{_OLD}.") for update, formula in _UPDATES),
    (
        r"ds_(?:wrxchg2|storexchg_2addr)(?:st64|_stride64)?_b(\d+)",
        "At once, at two addresses: D = {0} bits of LDS, which become data.",
    ),
    (r"ds_condxchg32_b64", "Of both halves: D = LDS, which becomes data where the top bit of data is set."),
    (
        r"ds_atomic_barrier_arrive_b64",
        "D = a barrier in LDS, at which data arrive; the last one begins its next phase.",
    ),
    (
        r"ds_atomic_async_barrier_arrive_b64",
        "Arrives at a barrier in LDS once the wave's asynchronous copies are done.",
    ),
    (r"ds_append", "D = a counter in LDS, to which the number of active lanes is added."),
    (r"ds_consume", "D = a counter in LDS, from which the number of active lanes is taken."),
)
"""Patterns of mnemonics, and what they mean."""
