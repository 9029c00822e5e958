"""MLIR's Python bindings under the name that FlyDSL programs import: `from flydsl._mlir import ir`.

It is upstream MLIR (`import mlir`, which everything else in this package uses), with one rule added: a value of the
DSL (`fx.Int32(3)`, `x * 2`, an `fx.Vector`) and the `ir.Value` behind it are two faces of one thing.

- Where MLIR takes an `ir.Value`, it takes a value of the DSL too: `scf.IfOp(i < n)`, `llvm.StoreOp(x, pointer)`.
- Where MLIR gives an `ir.Value` of a scalar or vector type, it has the DSL's operators and methods:
  `llvm.LoadOp(T.i32, pointer).result + 1`. So have block arguments, in regions that a kernel builds by hand.
- `isinstance(x, ir.Value)` holds for both, and `ir.Value(x)` is the plain one.

How: importing the package has MLIR show each operation by its class, and registers casters with it (`values`), which
act while a kernel or launcher is traced and never else, so passes see plain values. A module of MLIR appears here as
its mirror (`mirror`): the same module, whose operation classes and builder functions convert their operands, give the
operation the user's line as its location, and check it. A wrong operation is an error at the line that makes it, and
never ends the process (`lookahead`).

`dialects.fly` and `dialects.fly_rocdl` have the names of FlyDSL's own dialects that programs use; `dialects.rocdl`
takes operands in the form that `fx.rocdl` takes them in too, because MLIR's builders have changed since.
"""

from flydsl._mlir import lookahead, mirror, values
from flydsl.dialect.context import context, lock
from flydsl.dialect.ops import define_all
from flydsl.dialect.upstream import show_classes

context().load_all_available_dialects()
with lock:
    define_all()
show_classes()
values.register()
mirror.install()
lookahead.install()
