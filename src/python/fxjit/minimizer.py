"""fxjit.minimize: the nodes of a program at which compiled code differs from eager."""

from __future__ import annotations

import contextlib
import dataclasses
import io

import torch
from torch.utils import _pytree as pytree

from . import fx
from .fx._part import extract_part
from .fx.passes.net_min_base import _MinimizerBase, _MinimizerSettingBase

__all__ = ["Minimized", "minimize"]


@dataclasses.dataclass
class Minimized:
    """culprits: the nodes, in program order; none where nothing differs. part: a GraphModule of them alone, with
    `inputs`, eager's values for what it reads. log: what was run and compared."""

    culprits: list
    part: fx.GraphModule | None
    inputs: list
    log: str

    def __str__(self):
        if not self.culprits:
            return "no difference was found"
        lines = [f"{len(self.culprits)} node(s) differ from eager:"]
        for node in self.culprits:
            lines.append("  " + node.format_node())
            if node.stack_trace:
                lines += ["      " + line for line in node.stack_trace.strip().splitlines()[-2:]]
        shapes = ", ".join(f"{t.dtype} {tuple(t.shape)}" if isinstance(t, torch.Tensor) else repr(t) for t in self.inputs)
        lines.append(f"reproduce with .part(*.inputs): {shapes}")
        return "\n".join(lines)


def minimize(module, inputs, *, method="binary", find_all=False, compare=None, run=None, **options) -> Minimized:
    """Runs parts of a program eagerly and compiled, and narrows down where their results differ.

    module: a GraphModule, module or function; the latter two are traced. inputs: its positional arguments.
    method: "binary" (few runs), "sequential" (every node by itself), "accumulate" (growing from the first node),
        "block" (the smallest range of nodes)
    find_all: all nodes that differ, instead of the first (sequential and binary)
    compare(a, b): whether two results are equal enough; by default torch.testing.assert_close with its tolerances, NaNs
        equal, and dtype, shape and strides the same
    Parts get copies of their inputs: what a node writes to its arguments is seen within its part only.

    run(part, inputs): what to compare eager with instead of fxjit.compile(part, **options)
    """
    gm = module if isinstance(module, fx.GraphModule) else fx.symbolic_trace(module)
    equal = compare or _close
    minimizer = _EagerOrCompiled(
        gm, list(inputs), lambda a, b, names: (_largest_difference(a, b), _all_equal(equal, a, b)),
        _MinimizerSettingBase(traverse_method=method, find_all=find_all, all_outputs=True),
    )  # fmt: skip
    minimizer.run, minimizer.options = run, options
    minimizer.fusions = {}  # both runners take and give any value
    with contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        found = minimizer.minimize()
    log = "\n".join(line if i == 0 else " . " + line for report in minimizer.reports for i, line in enumerate(report))
    culprits = [node for node in gm.graph.nodes if node in found]
    if not culprits:
        return Minimized([], None, [], log)
    hull = fx._part.convex_hull(gm.graph, found)
    part, nodes, _ = extract_part(gm, hull)
    return Minimized(culprits, part, [minimizer._value(node.name, minimizer.a_outputs) for node in nodes], log)


class _EagerOrCompiled(_MinimizerBase):
    def run_shape_prop(self):
        with torch.no_grad():
            fx.passes.shape_prop.ShapeProp(self.module).propagate(*_copies(self.sample_input))

    def _inseparable(self, nodes):
        return set(nodes)

    def run_a(self, mod, inputs, report_idx=-1):
        return fx.Interpreter(mod).run(*_copies(inputs))

    def run_b(self, mod, inputs, report_idx=-1):
        if self.run is not None:
            return self.run(mod, _copies(inputs))
        from .compiler import compile as compiled

        f = compiled(mod, **self.options)
        f(*_copies(inputs))  # runs eagerly and is recorded
        return f(*_copies(inputs))


def _copies(values):
    """Parts may write to their inputs. Strides are kept."""
    return [pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), v) for v in values]


def _close(a, b):
    try:
        torch.testing.assert_close(a, b, equal_nan=True, check_stride=True)
    except AssertionError:
        return False
    return True


def _all_equal(equal, a, b):
    left, left_spec = pytree.tree_flatten(a)
    right, right_spec = pytree.tree_flatten(b)
    return left_spec == right_spec and all(
        equal(x, y) if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) else x == y
        for x, y in zip(left, right)
    )


def _largest_difference(a, b):
    """Of the numbers in both, for the log; inf where they cannot be compared."""
    largest = 0.0
    for x, y in zip(pytree.tree_leaves(a), pytree.tree_leaves(b)):
        if not isinstance(x, torch.Tensor) or not isinstance(y, torch.Tensor):
            continue
        if x.shape != y.shape:
            return float("inf")
        difference = (x.to(torch.float64) - y.to(torch.float64)).abs().nan_to_num(0.0)
        largest = max(largest, difference.max().item() if difference.numel() else 0.0)
    return largest
