#!/usr/bin/env python3
"""Write docs/fx.md: torch.fx beside fxjit.fx, name by name, from the code of both.

Every public module of torch.fx is walked: its classes, functions, methods and properties, and their signatures. What
fxjit.fx lacks or has otherwise needs a reason in tools/fx_notes.toml; --check (which the tests run) says what lacks one,
which notes are out of date, and whether docs/fx.md is what this command would write.

  PYTHONPATH=build/dev/python .venv/bin/python tools/fx_table.py
"""

import argparse
import fnmatch
import importlib
import inspect
import pkgutil
import sys
import tomllib
import warnings
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTES, TABLE = ROOT / "tools" / "fx_notes.toml", ROOT / "docs" / "fx.md"
KINDS = ("better", "differs", "left_out")
PRIVATE_BUT_USED = {"_symbolic_trace", "_pytree", "_lazy_graph_module", "_graph_pickler"}
SAME, MORE, DIFFERS, MISSING, NO_MODULE = "same", "same and more", "differs", "left out", "module left out"

HEADER = """# torch.fx and fxjit.fx, name by name

Written by `tools/fx_table.py` from the code of both (torch {version}); reasons are in `tools/fx_notes.toml`. A program
for torch.fx runs after `torch.fx` is replaced by `fxjit.fx` in it, as far as this table says *same*.

- **same**: the name is there and its parameters have the same names, kinds and defaults; annotations are not compared.
- **same and more**: ours also takes the parameters named.
- **better**: does what torch.fx's does, and what the note says.
- **differs**, **left out**: as the note says.

"""


@dataclass
class Row:
    """A name of torch.fx, without the prefix `torch.fx.`, and what fxjit.fx has for it."""

    name: str
    signature: str = ""
    state: str = SAME
    detail: str = ""
    note: str = ""
    children: list = field(default_factory=list)


def modules():
    """Names of torch.fx's modules, without prefix, torch.fx itself first."""
    import torch.fx

    yield ""
    found = [info.name.removeprefix("torch.fx.") for info in pkgutil.walk_packages(torch.fx.__path__, "torch.fx.")]
    for name in sorted(found):
        parts = name.split(".")
        if "tests" not in parts and all(not p.startswith("_") or p in PRIVATE_BUT_USED for p in parts):
            yield name


def load(package, name):
    try:
        return importlib.import_module(f"{package}.{name}" if name else package)
    except ImportError:
        return None


def public_names(module, name):
    """What a module defines for others; of torch.fx itself, what it gathers."""
    import torch.fx

    full = f"torch.fx.{name}".rstrip(".")
    for key, value in vars(module).items():
        if key.startswith("_") or inspect.ismodule(value):
            continue
        if not (inspect.isclass(value) or inspect.isroutine(value) or name == "" and key == "PH"):
            continue
        origin = getattr(value, "__module__", None) or ""
        if origin == full or name == "" and origin.startswith("torch.fx.") and value is not torch.fx:
            yield key


def members(cls):
    """Public methods and properties that torch.fx's own classes define."""
    names = set()
    for base in cls.__mro__:
        if (getattr(base, "__module__", "") or "").startswith("torch.fx."):
            names.update(k for k, v in vars(base).items() if k == "__init__" or not k.startswith("_"))
    return [n for n in sorted(names) if n == "__init__" or is_member(cls, n)]


def is_member(cls, name):
    value = inspect.getattr_static(cls, name)
    return isinstance(value, (property, staticmethod, classmethod)) or inspect.isroutine(value)


def signature_of(value):
    """inspect's signature without annotations; None where there is none."""
    if isinstance(value, property) or inspect.isdatadescriptor(value):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    if bare and bare[0].name == "self":  # of a function in C it is positional only, which nobody notices
        bare[0] = bare[0].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature(bare, __validate_parameters__=False)  # one of torch.fx's has its defaults out of order


def default_text(value):
    if inspect.isclass(value) or inspect.isroutine(value):
        return value.__name__
    if type(value).__module__ not in ("builtins", "inspect"):
        return f"<{type(value).__name__}>" if " at 0x" in repr(value) else repr(value)
    return repr(value)


def signature_text(signature):
    if signature is None:
        return ""
    parts, starred = [], False
    parameters = list(signature.parameters.values())
    for i, p in enumerate(parameters):
        if p.kind == p.VAR_POSITIONAL or p.kind == p.KEYWORD_ONLY and not starred:
            starred = True
            parts += ["*"] if p.kind == p.KEYWORD_ONLY else []
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f"={default_text(p.default)}"
        parts.append(prefix + p.name + default)
        if p.kind == p.POSITIONAL_ONLY and (i + 1 == len(parameters) or parameters[i + 1].kind != p.POSITIONAL_ONLY):
            parts.append("/")
    return f"({', '.join(parts)})"


def same_parameter(a, b):
    if (a.name, a.kind) != (b.name, b.kind) or (a.default is a.empty) != (b.default is b.empty):
        return False
    return default_text(a.default) == default_text(b.default)


def compare_signatures(theirs, ours):
    """(state, detail)"""
    if theirs is None or ours is None:
        return (SAME, "") if theirs is None else (DIFFERS, "no signature")
    wanted, have = list(theirs.parameters.values()), list(ours.parameters.values())
    have_by_name = {p.name: p for p in have}
    extra = [p for p in have if p.name not in theirs.parameters]
    common = [p.name for p in have if p.name in theirs.parameters]
    fits = all(p.name in have_by_name and same_parameter(p, have_by_name[p.name]) for p in wanted)
    if not fits or common != [p.name for p in wanted]:
        return DIFFERS, signature_text(ours)
    if any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in extra):
        return DIFFERS, signature_text(ours)
    return (MORE, ", ".join(p.name for p in extra)) if extra else (SAME, "")


def compare(name, theirs, ours_of):
    """ours_of: None, or (the thing itself,)."""
    row = Row(name, signature_text(signature_of(theirs)))
    if ours_of is None:
        row.state = MISSING
    elif ours_of[0] is not theirs:
        row.state, row.detail = compare_signatures(signature_of(theirs), signature_of(ours_of[0]))
    return row


def static_or_bound(cls, name):
    """A property as such, anything else as one gets it from the class; for __init__ the class, whose call it is."""
    if name == "__init__" and not issubclass(cls, type):
        return cls
    value = inspect.getattr_static(cls, name)
    return value if isinstance(value, property) else getattr(cls, name)


def class_row(name, theirs, ours_of):
    row = compare(name, theirs, ours_of)
    if ours_of is None or ours_of[0] is theirs:
        return row
    ours = ours_of[0]
    row.signature, row.state, row.detail = "", SAME, ""  # those of __init__
    for member in members(theirs):
        mine = (static_or_bound(ours, member),) if hasattr(ours, member) else None
        row.children.append(compare(f"{name}.{member}", static_or_bound(theirs, member), mine))
    return row


def module_rows(name):
    """(whether fxjit.fx has the module, rows)."""
    theirs, ours = load("torch.fx", name), load("fxjit.fx", name)
    rows = []
    for key in sorted(public_names(theirs, name)):
        value = getattr(theirs, key)
        mine = (getattr(ours, key),) if ours is not None and hasattr(ours, key) else None
        full = f"{name}.{key}".lstrip(".")
        origin = value.__module__ if hasattr(value, "__module__") else ""
        if name == "" and origin != "torch.fx":  # its members stand with the module that defines it
            rows.append(compare(full, value, mine))
        else:
            rows.append(class_row(full, value, mine) if inspect.isclass(value) else compare(full, value, mine))
    return ours is not None, rows


class Notes:
    """The notes by kind: pattern -> text. The longest pattern that fits a name is its note."""

    def __init__(self, path):
        self.tables = tomllib.loads(path.read_text())
        unknown = set(self.tables) - set(KINDS)
        if unknown:
            raise SystemExit(f"{path}: unknown section {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
        self.used = {kind: set() for kind in KINDS}

    def find(self, kind, name):
        fitting = [p for p in self.tables.get(kind, {}) if fnmatch.fnmatchcase(name, p)]
        if not fitting:
            return ""
        self.used[kind].add(max(fitting, key=len))
        return self.tables[kind][max(fitting, key=len)]

    def stale(self):
        return [(kind, p) for kind in KINDS for p in self.tables.get(kind, {}) if p not in self.used[kind]]


def annotate(row, notes, problems):
    if row.state == MISSING:
        row.note = notes.find("left_out", row.name)
        if not row.note:
            problems.append(f"fxjit.fx.{row.name} is missing and has no reason: build it, or add it under [left_out]")
    else:
        better, differs = notes.find("better", row.name), notes.find("differs", row.name)
        row.note = " ".join(filter(None, (better, differs)))
        if row.state == DIFFERS and not differs:
            problems.append(f"fxjit.fx.{row.name} has another signature: {row.detail} instead of {row.signature}; "
                            "make it the same, or say why under [differs]")
        elif differs:
            row.state = DIFFERS
        elif better:
            row.state = "better"
    for child in row.children:
        annotate(child, notes, problems)


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def row_lines(row):
    state = row.state
    if row.state == MORE:
        state = f"same, and {row.detail}"
    note = row.note if row.state != DIFFERS or not row.detail else f"`{row.detail}`: {row.note}"
    yield f"| `{cell(row.name + row.signature)}` | {cell(state)} | {cell(note)} |"
    for child in row.children:
        yield from row_lines(child)


def count(rows, totals):
    for row in rows:
        totals[row.state] = totals.get(row.state, 0) + 1
        count(row.children, totals)


def additions():
    """Names of fxjit.fx that torch.fx does not have, with the first line of their documentation."""
    import torch.fx

    ours = importlib.import_module("fxjit.fx")
    for name in sorted(set(ours.__all__) - set(dir(torch.fx))):
        doc = (inspect.getdoc(getattr(ours, name)) or "").split("\n")[0]
        yield f"| `fxjit.fx.{name}` | {cell(doc)} |"


def build(notes):
    """(the table's text, problems)"""
    import torch

    problems, body, totals, left = [], [], {}, []
    for name in modules():
        present, rows = module_rows(name)
        if not rows:
            continue
        for row in rows:
            annotate(row, notes, problems)
        count(rows, totals)
        title = f"torch.fx.{name}".rstrip(".")
        reasons = {row.note for row in rows}
        if not present and len(reasons) == 1:
            left.append(f"| `{title}` | {len(rows)} | {cell(reasons.pop())} |")
            continue
        body += [f"## {title}", "", "| name | fxjit.fx | note |", "| --- | --- | --- |"]
        body += [line for row in rows for line in row_lines(row)] + [""]
    problems += [f"the note [{kind}] \"{pattern}\" fits nothing any more: remove it" for kind, pattern in notes.stale()]
    summary = ", ".join(f"{totals[state]} {state}" for state in sorted(totals, key=totals.get, reverse=True))
    head = HEADER.format(version=torch.__version__.split("+")[0]) + f"Names: {summary}.\n\n"
    more = ["## Modules left out", "", "| module | names | reason |", "| --- | --- | --- |", *left, "",
            "## Beyond torch.fx", "", "| name | what it is |", "| --- | --- |", *additions()]
    return head + "\n".join(body + more) + "\n", problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if anything is amiss")
    args = parser.parse_args()
    text, problems = build(Notes(NOTES))
    current = TABLE.read_text() if TABLE.exists() else ""
    if not args.check:
        TABLE.write_text(text)
        print(f"{TABLE.relative_to(ROOT)}: {'unchanged' if text == current else 'written'}")
    elif text != current:
        problems.append("docs/fx.md is out of date: run tools/fx_table.py (CONTRIBUTING.md, Adding to fxjit.fx)")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
