"""Keep matrix products of RDNA out of branches that only some lanes take.

LLVM 22.1 knows of MFMA that all lanes take part in it, but not of WMMA: where a product is used in a branch alone, its
back end moves it there (MachineSink). The instruction itself ignores which lanes are active; what reloads its operands
in the branch does not, so that rows of A and B are missing. An empty inline assembly that all lanes take part in uses
the product first, unless another product does, or the way to the next block.
"""

from __future__ import annotations

import re

from flydsl.codegen.llvm_bugs.ir_text import NAME, functions

_BLOCK = re.compile(r'(?m)^(?=(?:"[^"]*"|[-\w.$]+):)')
_PRODUCT = re.compile(
    rf"(?m)^(?P<start>\s*)(?P<name>{NAME})(?P<call> = (?:tail )?call (?:[a-z]+ )*(?P<type><\d+ x \w+>) "
    r"@llvm\.amdgcn\.s?wmma.*)$"
)


def pin_products(llvm_ir: str) -> str:
    """LLVM IR text, as LLVM prints it, in which products stay in the blocks that compute them."""
    return "".join("".join(_pinned(block, function) for block in _BLOCK.split(function))
                   for function in functions(llvm_ir))  # fmt: skip


def _pinned(block: str, function: str) -> str:
    """A block of a function; one that does not branch has no place to move a product to."""
    if " br i1 " not in block:
        return block
    label = block.partition(":")[0]

    def stays(name: str) -> bool:
        word = rf"{re.escape(name)}(?![-\w.$])"
        by_another = re.search(rf"@llvm\.amdgcn\.s?wmma.*{word}", block)
        return bool(by_another or re.search(rf" = phi .*\[ {word}, %{re.escape(label)} \]", function))

    def with_use(product: re.Match[str]) -> str:
        start, name, kind = product["start"], product["name"], product["type"]
        if stays(name):
            return product[0]
        own = f'%"product {name[1:].strip(chr(34))}"'
        return f'{start}{own}{product["call"]}\n{start}{name} = call {kind} asm "", "=v,0"({kind} {own}) convergent'

    return _PRODUCT.sub(with_use, block)
