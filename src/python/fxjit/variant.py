"""A captured program with its compiled function."""

from __future__ import annotations

import torch

from .capture import Capture


class Variant:
    """One structure of arguments with one set of constants, and sizes and types that control flow tells apart: its
    captured program and its compiled function.

    hot: what the hot call compares arguments with (constants, guards on sizes, keyword names), or None where it cannot
    watched: whether the hot call sees every change of what the trace rests on
    """

    def __init__(self, captured: Capture, function, attributes):
        self.captured, self.function, self.attributes, self.hot = captured, function, attributes, None
        self.watched = not captured.unwatched
        self.segments = None  # where Python calls stand in the graph: parts between them

    def inputs(self, leaves):
        c = self.captured
        return [leaves[i] for i in c.values if i not in c.varying] + [d[k] for d, k in self.attributes]

    def numbers(self, leaves):
        return [leaves[i] for i in self.captured.values if i in self.captured.varying]

    def size_programs(self, leaves):
        """The captured graph's guards for the hot call; None where it cannot check them."""
        inputs, programs, c = self.inputs(leaves), [], self.captured
        tensors = [k for k, i in enumerate(c.values) if i not in c.varying]  # placeholders, in the order of `inputs`

        def position(leaf):
            if leaf[0] == "input":
                return tensors.index(leaf[1]) if leaf[1] in tensors else None
            owner, name = _owner(c.root, leaf[1])
            tables = [id(t) for t in (owner._parameters, owner._buffers, owner.__dict__)]
            found = (i for i, (d, k) in enumerate(self.attributes) if k == name and id(d) in tables)
            i = next(found, None)
            return None if i is None else len(inputs) - len(self.attributes) + i

        for guard in c.conditions:
            made = guard.size_programs(inputs, position)
            if made is None:
                return None
            programs += made
        return programs


def _owner(module, path):
    *parents, name = path.split(".")
    for p in parents:
        module = getattr(module, p)
    return module, name


def attribute_sources(module, graph) -> list:
    """(dict, key) of each tensor that the graph reads from modules: get_attr nodes and what leaf modules hold."""
    found: dict = {}

    def add(owner, name):
        for d in (owner._parameters, owner._buffers, owner.__dict__):
            if isinstance(d.get(name), torch.Tensor):
                found.setdefault((id(d), name), (d, name))

    for node in graph.nodes:
        if node.op == "get_attr":
            add(*_owner(module, node.target))
        elif node.op == "call_module":
            for sub in module.get_submodule(node.target).modules():
                for table in (sub._parameters, sub._buffers):
                    for name in table:
                        add(sub, name)
    return list(found.values())
