"""Where things lie in the memory that native code shares with Python. Offsets are in bytes.

- A *wave block* is the state of one wave: scalar registers, control state, then the vector registers, one row of 64
  dwords each, AGPRs from row 256.
- A *record* is one decoded instruction: the address of its handler, then eight bytes for each operand in the order of
  the text (a register's offset in the wave block, the bits of a constant, or the distance to a branch target), then the
  offset modifiers. A handler is called with its wave block and its record, and ends by calling the next record's.
- A *workspace* is what handlers and the runtime functions use to pass vectors; each thread has one.
- A *group block* is a workgroup in execution; a *launch block* is what all threads share.
"""

from __future__ import annotations

from flydsl.simulator.operands import SGPR_FILE_SIZE
from flydsl.simulator.waves import ACCUMULATION_ROW, LANES

ROW_BYTES = 4 * LANES

# --- wave block

SCC = 4 * SGPR_FILE_SIZE
MODE = 516
STATUS = 520
PC = 528  # of the next record
RUN_START = 536  # the record where the current straight run of instructions began
EXECUTED = 544  # instructions before that one
STOP_AT = 552  # instructions after which a taken branch returns to the scheduler
RECORDS = 560  # the first record, of the program bound to the wave's MODE
RECORD_COUNT = 568
LDS = 576
LDS_BYTES = 584
SCRATCH = 592
SCRATCH_BYTES = 600  # of one lane
SCRATCH_STRIDE = 608
BUFFERS = 616  # the table of mapped buffers
BUFFER_COUNT = 624
WORKSPACE = 632
COUNTING = 640  # the thread's counting block, where the launch counts
OBSERVER = 648  # the function to call after every vector access that succeeded, or null
VGPR_END = 656  # where the VGPRs end that the kernel was given

VGPR = 1024
WAVE_BYTES = VGPR + 2 * ACCUMULATION_ROW * ROW_BYTES
# Not a multiple of 4 KiB, so that the same register of several waves does not fall into the same set of the cache.
WAVE_STRIDE = WAVE_BYTES + 1216

# --- record

RECORD_BYTES = 64
OPERAND_SLOTS = 5
OFFSET_SLOT, SECOND_OFFSET_SLOT = 5, 6


def slot_offset(slot: int) -> int:
    return 8 + 8 * slot


# --- workspace

ADDRESS = 0  # 64 addresses, i64
HOST = 512  # four times 64 host addresses
DATA = 2560  # 32 rows
MATRIX_A = DATA + 32 * ROW_BYTES  # 16 rows of f64
MATRIX_B = MATRIX_A + 16 * 2 * ROW_BYTES
NOWHERE = MATRIX_B + 16 * 2 * ROW_BYTES  # zeros: what a lane reads that does not read
DUMP = NOWHERE + 64  # where a lane writes that does not write
WORKSPACE_BYTES = DUMP + 64

# --- counting block (see `counting`)

COUNTING_ENTRY = 0  # of the instruction with an access that is being executed
COUNTING_PART = 8  # how many accesses it has made
COUNTING_STAMP = 16  # what is in the set and has another stamp is not in it
COUNTING_MASKS = 64  # of each part: the lanes that took part
MAX_PARTS = 8
COUNTING_ROWS = COUNTING_MASKS + 8 * MAX_PARTS  # of each part: 64 addresses, i64
COUNTING_WAYS = COUNTING_ROWS + 8 * LANES * MAX_PARTS  # i64 for each bank
MAX_BANKS = 64
COUNTING_SET = COUNTING_WAYS + 8 * MAX_BANKS  # of numbers: (number, stamp), hashed
SET_SIZE_LOG2 = 11  # more than twice of what one instruction can put into it: 2 lines of 8 parts of 64 lanes
COUNTING_ENTRIES = COUNTING_SET + (16 << SET_SIZE_LOG2)

# Of every instruction, as far from COUNTING_ENTRIES as its record is from the first one.
ENTRY_EXECUTIONS, ENTRY_ACTIVE_LANES = 0, 8
ENTRY_GLOBAL_BYTES, ENTRY_GLOBAL_LINES = 16, 24
ENTRY_LDS_BYTES, ENTRY_LDS_PASSES, ENTRY_LDS_PHASES = 32, 40, 48
ENTRY_PATTERN = 56

# Of every instruction with accesses: the last pattern of addresses, what it costs, and the rest of its counts.
PATTERN_ACTIVE, PATTERN_LOW, PATTERN_RESULT, PATTERN_PHASES, PATTERN_UNALIGNED = 0, 8, 16, 24, 32
PATTERN_RULE = 40  # which lanes compete for LDS, or null where that is not known
PATTERN_MAX_WAYS, PATTERN_SCRATCH_BYTES = 48, 56
PATTERN_RELATIVE = 64  # 64 addresses, relative to that of the first active lane
PATTERN_UNCOUNTED = PATTERN_RELATIVE + 8 * LANES  # accesses to LDS that are not aligned to a dword
PATTERN_BYTES = PATTERN_UNCOUNTED + 64

RULE_DWORDS, RULE_BANKS, RULE_PHASES, RULE_LANES_PER_PHASE, RULE_LANES = 0, 8, 16, 24, 32

# --- entry of the table of buffers, by slot of the address space

BUFFER_BASE, BUFFER_HOST, BUFFER_SIZE, BUFFER_WRITABLE = 0, 8, 16, 24
BUFFER_ROWS, BUFFER_ROW_COUNT = 32, 40  # of a view with gaps: (stride, extent) of each level, the longest first
BUFFER_BYTES = 48
ROWS_BYTES = 16

# --- group block, all i64 or pointers

GROUP_LAUNCH = 0
GROUP_WAVES = 8
GROUP_ACTIVE = 16  # whether a workgroup is in execution
GROUP_WORKGROUP = 24  # its linear id
GROUP_WAVE = 32  # whose turn it is
GROUP_BUDGET = 40  # instructions until `run` returns to Python
GROUP_EXECUTED = 48  # instructions of all the workgroups that ended here
GROUP_LDS = 56
GROUP_SCRATCH = 64
GROUP_BYTES = 72

# --- launch block, all i64 or pointers

LAUNCH_NEXT = 0  # the linear id of the next workgroup to start
LAUNCH_COUNT = 8
LAUNCH_GRID_X, LAUNCH_GRID_Y = 16, 24
LAUNCH_ID_X, LAUNCH_ID_Y, LAUNCH_ID_Z = 32, 40, 48  # offset of the scalar register with the id, or -1
LAUNCH_WAVES = 56  # per workgroup
LAUNCH_TEMPLATE = 64  # per wave: its block up to VGPR, and the row of v0
LAUNCH_VGPR_BYTES, LAUNCH_AGPR_BYTES = 72, 80
LAUNCH_LDS_BYTES, LAUNCH_SCRATCH_BYTES = 88, 96  # per workgroup
LAUNCH_LIMIT = 104  # instructions per wave
LAUNCH_MODE_COUNT = 112
LAUNCH_MODES = 120  # (MODE, first record) of each mode that the program is bound for
MAX_MODES = 16
LAUNCH_BYTES = LAUNCH_MODES + 16 * MAX_MODES

TEMPLATE_BYTES = VGPR + ROW_BYTES

# --- statuses: those of `waves` for a wave, and why a wave or `run` returned

FALL_BACK = 3  # the instruction at the pc is to be executed by the lock-step machine
MODE_CHANGED = 4
DONE, SLICE_OVER, DEADLOCK, LIMIT_REACHED = 16, 17, 18, 19
