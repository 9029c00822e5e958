"""Help for instructions, as HTML and as text: their meaning, operands, unit and cost."""

from __future__ import annotations

from collections import Counter

from flydsl.simulator.decoding.instruction_help import InstructionHelp, instruction_help
from workbench.kit.html import code, escape, table
from workbench.machine_code.analysis import Analysis
from workbench.machine_code.instructions import MachineInstruction


def help_of(analysis: Analysis, instruction: MachineInstruction) -> InstructionHelp:
    """The help for an instruction of a kernel."""
    kernel = analysis.kernel
    return instruction_help(instruction.text, kernel.arch, kernel.info.wave_size)


def help_line(found: InstructionHelp) -> str:
    """The help in a line of text, for the tooltip of an instruction."""
    cost = found.cost and f" {found.cost[0].upper()}{found.cost[1:]}."
    missing = f" Not executed here: {found.not_executed}." if found.not_executed else ""
    return f"{found.meaning or 'What it does is not known here.'}{cost}{missing}"


def help_html(found: InstructionHelp) -> str:
    """The help as a few lines of HTML."""
    facts = [f"unit: {found.unit}", f"cost: {found.cost or 'not known'}"]
    facts.append(f"not executed here: {found.not_executed}" if found.not_executed else "executed by the simulator")
    return (
        f"<strong>{code(found.mnemonic)}</strong> {escape(found.meaning or 'What it does is not known here.')}"
        f"<div>operands: {escape(operands_text(found) or 'none')}</div><div>{escape('; '.join(facts))}</div>"
    )


def operands_text(found: InstructionHelp) -> str:
    """The operands in the order of the text, and the state that it does not name."""
    operands = ", ".join(f"{role} {type_}".strip() if role != type_ else role for role, type_ in found.operands)
    parts = [operands]
    parts += [
        f"{verb} {', '.join(names)}" for verb, names in (("reads", found.reads), ("writes", found.writes)) if names
    ]
    return "; ".join(filter(None, parts))


def glossary_html(analysis: Analysis) -> str:
    """Every form of instruction in a kernel, once, with its help."""
    counts = Counter(help_of(analysis, instruction) for instruction in analysis.instructions)
    rows = [
        [
            code(found.mnemonic),
            str(count),
            escape(found.meaning or "not known here"),
            escape(operands_text(found)),
            escape(found.unit.partition(":")[0]),
            escape(found.cost or "not known"),
            escape(f"no: {found.not_executed}" if found.not_executed else "yes"),
        ]
        for found, count in sorted(counts.items(), key=lambda item: (item[0].mnemonic, item[0].operands))
    ]
    head = ("instruction", "uses", "what it does", "operands", "unit", "cost", "executed here")
    return table(head, rows, numbers=(1,))
