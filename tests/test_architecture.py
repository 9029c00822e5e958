"""The house's rules: who may import whom, where the environment is read, where architectures are named."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]

# A part may import these, what they may import, and what every part may.
EVERY_PART_MAY = {"errors", "env", "system"}
MAY_IMPORT = {
    "errors": (),
    "env": (),
    "system": (),
    "language": (),
    "hsaco": (),
    "printing": (),
    "progress": (),
    "layout": (),
    "arch": ("layout",),
    "atoms": ("layout",),
    "dialect": ("layout", "atoms"),
    "expr": ("dialect", "arch", "printing"),
    "utils": ("expr",),
    "extension": ("expr",),
    "passes": ("dialect", "arch", "printing"),
    "codegen": ("arch", "hsaco"),
    "simulator": ("arch", "hsaco", "progress"),
    "runtime": ("simulator", "codegen", "printing", "atoms"),
    "interpreter": ("expr", "runtime"),
    "compiler": ("expr", "passes", "codegen", "runtime", "interpreter", "utils"),
    "sweeps": ("compiler",),
    "autotune": ("sweeps",),
    "testing": ("sweeps", "gpu"),
    "gpu": ("sweeps", "triton"),
    "launchers": ("autotune",),
    "sizes": ("compiler",),
    "_mlir": ("compiler",),
    "binary": ("compiler",),
    "triton": ("binary", "sweeps"),
}
JUPYTER = {"workbench", "IPython", "ipykernel", "ipywidgets", "anywidget", "jupyterlab", "notebook", "plotly"}
NOTEBOOK = {"IPython", "ipywidgets", "anywidget", "traitlets", "plotly"}
ENVIRONMENT = {"environ", "environb", "getenv", "putenv"}

# The groups of the workbench's views; each may import those before it.
VIEW_GROUPS = ("kit", "resources", "layouts", "stages", "machine_code", "run", "thread_trace", "sweeps")

SOURCES = [p for package in ("flydsl", "workbench", "kernels") for p in sorted((ROOT / package).rglob("*.py"))]


@dataclass(frozen=True)
class Facts:
    """What the rules ask of a file.

    run_time: of its imports those that are not for types only. kept: its attributes that the first look makes.
    asserted: the attributes that its assertions look at, and names that they assign.
    """

    imports: tuple[str, ...]
    run_time: tuple[str, ...]
    environment: tuple[str, ...]
    architectures: tuple[str, ...]
    kept: tuple[str, ...]
    asserted: tuple[str, ...]


@cache
def facts(path: Path) -> Facts:
    """Of a file, whose syntax tree, which is large, is not kept."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    package = path.relative_to(ROOT).parent.parts
    imports = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
    guarded = [
        n for n in nodes if isinstance(n, ast.If) and isinstance(n.test, ast.Name) and n.test.id == "TYPE_CHECKING"
    ]
    types_only = {inner for node in guarded for statement in node.body for inner in ast.walk(statement)}
    prose = {n.value for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
    strings = [n.value for n in nodes if isinstance(n, ast.Constant) and n not in prose and isinstance(n.value, str)]
    return Facts(
        imports=tuple(name for node in imports for name in imported(node, package)),
        run_time=tuple(name for node in imports if node not in types_only for name in imported(node, package)),
        environment=tuple(n.attr for n in nodes if isinstance(n, ast.Attribute) and n.attr in ENVIRONMENT),
        architectures=tuple(string for string in strings if re.search(r"gfx\d", string)),
        kept=tuple(n.name for n in nodes if isinstance(n, ast.FunctionDef) and is_kept(n)),
        asserted=tuple(name for n in nodes if isinstance(n, ast.Assert) for name in looked_at(n)),
    )


def imported(node: ast.Import | ast.ImportFrom, package: tuple[str, ...]) -> Iterator[str]:
    """Dotted names that a statement of a module in `package` imports: `from a import b` is "a.b"."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    else:
        base = package[: len(package) + 1 - node.level] if node.level else ()
        yield from (".".join((*base, *filter(None, [node.module]), alias.name)) for alias in node.names)


def is_kept(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith("cached_property") for decorator in function.decorator_list)


def looked_at(assertion: ast.Assert) -> Iterator[str]:
    for node in ast.walk(assertion.test):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.NamedExpr):
            yield ":="


def part(path: Path) -> str:
    """The part of flydsl that a file belongs to: its folder, or its own name at top level."""
    return path.relative_to(ROOT / "flydsl").with_suffix("").parts[0]


@cache
def reachable(name: str) -> set[str]:
    return EVERY_PART_MAY.union({name}, *(reachable(other) for other in MAY_IMPORT[name]))


def forbidden_imports(path: Path) -> list[str]:
    """The imports of a file that point the wrong way."""
    names = facts(path).imports
    jupyter = [name for name in names if name.split(".")[0] in JUPYTER]
    parts = {name: name.split(".")[1] for name in names if re.match(r"flydsl\.\w", name)}
    match path.relative_to(ROOT).parts:
        case ("workbench", *place):
            private = [name for name in names if re.match(r"flydsl\.(.*\.)?_(?!_)", name)]
            later = VIEW_GROUPS[VIEW_GROUPS.index(place[0]) + 1 :] if place[0] in VIEW_GROUPS else ()
            return private + [name for name in names if name.startswith(tuple(f"workbench.{group}" for group in later))]
        case ("kernels", *_):
            allowed = reachable("launchers") | {"sizes", "utils", "_mlir"}
            return jupyter + [name for name, part in parts.items() if part not in allowed]
        case _ if part(path) == "__init__":
            return jupyter
        case _:
            allowed = {"__version__", *reachable(part(path))}
            return jupyter + [name for name, part in parts.items() if part not in allowed]


def environment_reads(path: Path) -> list[str]:
    """The ways in which a file reads or writes the environment."""
    found = facts(path)
    return [*found.environment, *(name for name in found.imports if name in {f"os.{f}" for f in ENVIRONMENT})]


def architecture_names(path: Path) -> list[str]:
    """The strings of a file that name an architecture; documentation does not count."""
    return list(facts(path).architectures)


def violations(
    rule: Callable[[Path], list[str]], *, exempt: tuple[str, ...] = (), at_least: int = 100
) -> dict[str, list[str]]:
    """The findings of a rule in each source file, except in the exempt files and folders."""
    checked = [path for path in SOURCES if not any(path.is_relative_to(ROOT / place) for place in exempt)]
    assert len(checked) > at_least
    return {str(path.relative_to(ROOT)): found for path in checked if (found := rule(path))}


def test_imports_point_one_way() -> None:
    assert violations(forbidden_imports) == {}


def test_environment_is_read_in_one_place() -> None:
    assert violations(environment_reads, exempt=("flydsl/env.py",)) == {}


def test_architectures_are_named_as_data_only() -> None:
    """A kernel may name those that it is for."""
    assert violations(architecture_names, exempt=("flydsl/arch", "flydsl/atoms", "kernels")) == {}


def notebook_imports(path: Path) -> list[str]:
    """The packages of the extra `notebook` that a file imports itself."""
    return [name for name in facts(path).run_time if name.split(".")[0] in NOTEBOOK]


def test_packages_of_the_notebook_come_through_one_door() -> None:
    """Which says how to install them."""
    assert violations(notebook_imports, exempt=("workbench/kit/notebook.py",)) == {}


def test_assertions_have_no_effect() -> None:
    """`python -O` drops them: none may be the first to look at what a look makes, in its own file."""
    assert violations(lambda path: sorted({":=", *facts(path).kept}.intersection(facts(path).asserted))) == {}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports_between_modules(kind: str, *, but: Collection[tuple[str, str]] = ()) -> dict[str, set[str]]:
    """The modules that each imports. kind: of `Facts`, "imports" or "run_time"."""
    modules = {module_name(path): path for path in SOURCES}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        found = {other if other in modules else other.rpartition(".")[0] for other in getattr(facts(path), kind)}
        graph[name] = {other for other in found & modules.keys() - {name} if (name, other) not in but}
    return graph


def test_imports_at_run_time_have_no_circles() -> None:
    """The pipeline makes an artifact, which keeps the pipeline: the one of them imports the other for its types."""
    TopologicalSorter(imports_between_modules("run_time")).prepare()  # raises CycleError, which names the circle


def test_only_the_pipeline_is_imported_for_types_by_what_it_imports() -> None:
    """Elsewhere a Protocol says what is needed of a class above."""
    pipeline = "flydsl.compiler.pipeline"
    known = {("flydsl.compiler.artifact", pipeline), ("flydsl.compiler.lowering.observers", pipeline)}
    TopologicalSorter(imports_between_modules("imports", but=known)).prepare()


_FUNCTION_OF_LLVM_IR = re.compile(r"amdgpu_kernel|\^(\(\?=)?(define|declare)\b")


def patterns_of_llvm_ir(path: Path) -> list[str]:
    """The regular expressions of a file that find functions of LLVM IR."""
    source = path.read_text()
    if not _FUNCTION_OF_LLVM_IR.search(source):  # nearly all files, which need no parsing
        return []
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    found = [ast.unparse(node) for node in calls if ast.unparse(node.func).startswith("re.")]
    return [text for text in found if _FUNCTION_OF_LLVM_IR.search(text)]


def test_functions_of_llvm_ir_are_found_in_one_place() -> None:
    assert violations(patterns_of_llvm_ir, exempt=("flydsl/codegen/llvm_bugs",)) == {}


MOST_BY_POSITION = 4


def built_by_position(path: Path) -> list[str]:
    """The dataclasses of a file with many fields, and plans, that do not ask for keywords."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ClassDef):
            continue
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        fields = [statement for statement in node.body if isinstance(statement, ast.AnnAssign)]
        is_large = node.name == "Plan" or len(fields) > MOST_BY_POSITION
        if is_large and any(d.startswith("dataclass") and "kw_only=True" not in d for d in decorators):
            found.append(node.name)
    return found


def test_plans_of_kernels_are_built_by_keyword() -> None:
    """Twelve arguments in a row say nothing to a reader."""
    assert violations(built_by_position, exempt=("flydsl", "workbench"), at_least=50) == {}


def test_the_simulators_root_is_small() -> None:
    """What belongs together has a room."""
    assert len(list((ROOT / "flydsl" / "simulator").glob("*.py"))) <= 12
