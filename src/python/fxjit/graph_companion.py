"""Companions of programs that are graphs already: GraphModules, and parts of a program between Python calls."""

from __future__ import annotations

import torch

from . import fx
from .callees import has_hooks
from .capture import Basis, Capture, CaptureError
from .companion import GRADIENTS, Companion
from .fx._guard_check import bind_guards, check_guards
from .fx._run import SnapshotInterpreter, placeholder_values
from .generic_form import GenericForm
from .inlining import inline_composites
from .leaves import flatten, is_plain_tensor
from .numbers import is_number
from .state_guards import ModuleGuard


class GraphCompanion(Companion):
    """For a GraphModule: its snapshot is the program."""

    def varying(self, structure, leaves):
        return frozenset(i for i, x in enumerate(leaves) if is_number(x))  # the graph is what it is: nothing to trace

    def give_up(self, structure):
        return False

    def settle(self, structure):
        pass

    def capture(self, spec, leaves, varying):
        if has_hooks(self.target):
            raise CaptureError("the module has hooks", Basis([ModuleGuard(self.target, "")]))
        return self.capture_snapshot(self.target._snapshot, spec, leaves, varying)

    def capture_snapshot(self, snapshot, spec, leaves, varying):
        target = self.target
        plain = all(i in varying or is_plain_tensor(x) for i, x in enumerate(leaves))
        if not plain or spec != flatten((tuple(leaves), {}))[1]:
            raise CaptureError("an argument of the graph is no plain tensor, int or float")
        placeholders = [n for n in snapshot.nodes if n.op == "placeholder"]
        if len(placeholders) != len(leaves) or any(n.target.startswith("*") for n in placeholders):
            raise CaptureError("the arguments are not one value for each placeholder")
        higher = next((n for n in snapshot.nodes if isinstance(n.target, torch._ops.HigherOrderOperator)), None)
        if higher is not None:  # has no kernel under the recorder's dispatch key
            raise CaptureError(f"{higher.name} calls the higher-order operator {higher.target.name()}")
        conditions = bind_guards(snapshot, target)
        check_guards(conditions, leaves, target)
        graph = fx.Graph()
        result = graph.graph_copy(snapshot, {})
        try:
            graph.output(snapshot._codegen.process_outputs(result))
        except (TypeError, NotImplementedError, ValueError) as e:
            raise CaptureError(f"the graph's calling convention builds its result in Python: {e}") from e
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        inline_composites(graph, {placeholders[i]: type(leaves[i]) for i in varying})
        guards = [ModuleGuard(m, path) for path, m in target.named_modules()]
        return Capture(target, graph, guards, "the graph of a GraphModule", conditions, values=list(range(len(leaves))),
                       varying=varying)


class SnapshotCompanion(GraphCompanion):
    """What runs when a GraphModule is called: bound to one snapshot, silent about gradients."""

    def __init__(self, module):
        self.snapshot = module._snapshot
        super().__init__(module, {})
        self.warned.add(GRADIENTS)
        self.generic = None  # made by the second call that needs it: many modules are called once

    def capture(self, spec, leaves, varying):
        return self.capture_snapshot(self.snapshot, spec, leaves, varying)

    @property
    def eager_target(self):
        return self.run_snapshot  # the module's own call ends here

    def run_snapshot(self, *args):
        """A call that no variant is for: of other values than tensors and numbers, of modules with hooks, …"""
        if self.generic is None:
            self.generic = GenericForm(self.target, self.snapshot)
            return SnapshotInterpreter(self.target, self.snapshot).run_parameters(args)
        values = placeholder_values(self.snapshot, args)
        check_guards(bind_guards(self.snapshot, self.target), values, self.target)
        return self.snapshot.process_outputs(self.generic(values, self.options, self.notes.append))


class PartCompanion(SnapshotCompanion):
    """A part of a program between Python calls."""

    def __init__(self, root, graph, options):
        self.snapshot = graph
        Companion.__init__(self, root, options)
        self.warned.add(GRADIENTS)
        self.generic = None


def snapshot_executor(module: fx.GraphModule):
    """The callable behind a GraphModule: one positional argument per parameter of forward."""
    return SnapshotCompanion(module).compiled
