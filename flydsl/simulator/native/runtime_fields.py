"""LLVM IR that reads and changes fields of the blocks which native code shares with Python."""

from __future__ import annotations


def place(name: str, block: str, offset: int) -> str:
    return f"  %{name} = getelementptr i8, ptr %{block}, i64 {offset}\n"


def field(name: str, block: str, offset: int, type_: str = "i64") -> str:
    """Load a field of a block into %name; its address is %p_name."""
    return place(f"p_{name}", block, offset) + f"  %{name} = load {type_}, ptr %p_{name}\n"


def add(name: str, block: str, offset: int, amount: str) -> str:
    """Add to a field of a block."""
    return (
        field(name, block, offset) + f"  %{name}_sum = add i64 %{name}, {amount}\n"
        f"  store i64 %{name}_sum, ptr %p_{name}\n"
    )
