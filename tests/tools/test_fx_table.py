"""docs/fx.md is what tools/fx_table.py makes of the code, and whatever differs from torch.fx has a reason."""

import importlib.util
import inspect
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("fx_table", ROOT / "tools/fx_table.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["fx_table"] = module
    spec.loader.exec_module(module)
    return module


def test_the_table_is_up_to_date_and_every_difference_has_a_reason():
    run = subprocess.run([sys.executable, "tools/fx_table.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def states(tool, theirs, ours):
    return tool.compare("f", theirs, (ours,)).state


def test_signatures_are_compared_by_names_kinds_and_defaults(tool):
    def theirs(a, b=1, *, c=None):
        pass

    def annotated(a: int, b: int = 1, *, c=None) -> int:
        pass

    def more(a, b=1, *, c=None, d=2):
        pass

    def other_default(a, b=2, *, c=None):
        pass

    def other_kind(a, b=1, c=None):
        pass

    def swapped(b, a=1, *, c=None):
        pass

    def demanding(a, e, b=1, *, c=None):
        pass

    assert states(tool, theirs, annotated) == tool.SAME and states(tool, theirs, more) == tool.MORE
    for other in (other_default, other_kind, swapped, demanding):
        assert states(tool, theirs, other) == tool.DIFFERS


def test_what_lacks_a_reason_and_what_has_one_for_nothing_is_said(tool, tmp_path):
    path = tmp_path / "notes.toml"
    path.write_text('[left_out]\n"graph.a*" = "why"\n"graph.zzz" = "stale"\n[differs]\n"graph.c" = "so"\n')
    notes, problems = tool.Notes(path), []
    rows = [tool.Row("graph.ab", state=tool.MISSING), tool.Row("graph.b", state=tool.MISSING),
            tool.Row("graph.c", state=tool.DIFFERS, detail="(x)"), tool.Row("graph.d", "(y)", tool.DIFFERS, "(x)")]
    for row in rows:
        tool.annotate(row, notes, problems)
    assert rows[0].note == "why" and rows[2].note == "so"
    assert [p.split()[0] for p in problems] == ["fxjit.fx.graph.b", "fxjit.fx.graph.d"]
    assert notes.stale() == [("left_out", "graph.zzz")]


def test_the_walk_sees_what_matters(tool):
    import torch.fx

    names = set(tool.modules())
    assert {"", "graph", "node", "proxy", "passes.shape_prop", "_symbolic_trace", "subgraph_rewriter"} <= names
    assert {"create_node", "nodes", "lint", "__init__"} <= set(tool.members(torch.fx.Graph))
    assert inspect.signature(torch.fx.Graph.lint) == tool.signature_of(torch.fx.Graph.lint)
