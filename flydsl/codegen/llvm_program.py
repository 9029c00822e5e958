"""The program of LLVM's process: `llvm_worker`, in a package without its `__init__`, which imports the compiler.

A file of its own, as Python compiles what it is told to run anew each time.
"""

import sys
from types import ModuleType

if __name__ == "__main__":
    folder = __file__.rpartition("/codegen/")[0]
    for name, path in (("flydsl", folder), ("flydsl.codegen", f"{folder}/codegen")):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [path]

    from flydsl.codegen.llvm_worker import main

    main(int(sys.argv[1]), *sys.argv[2:])
