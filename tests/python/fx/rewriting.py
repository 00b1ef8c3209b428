"""One rewrite by torch.fx and by ours, in a form that can be compared."""

import importlib

import torch

FX = ("torch.fx", "fxjit.fx")


def rewriter(fx):
    return importlib.import_module(fx.__name__ + ".subgraph_rewriter")


def describe(node):
    return node.name if hasattr(node, "users") else repr(node)


def rewrite(fx, program, pattern, replacement, wrapped=(), **options):
    """What a rewrite leaves behind, in a form that can be compared."""
    for fn in wrapped:
        fx.wrap(fn)
    gm = fx.symbolic_trace(program)
    pattern, replacement = (p(fx) if isinstance(p, Traced) else p for p in (pattern, replacement))
    done = rewriter(fx).replace_pattern_with_filters(gm, pattern, replacement, **options)
    gm.graph.lint()
    matches = [
        (
            m.anchor.name,
            {pn.name: describe(gn) for pn, gn in m.nodes_map.items()},
            [n.name for n in m.replacements],
        )
        for m in done
    ]
    return gm, [n.format_node() for n in gm.graph.nodes], matches


class Traced:
    """A pattern or replacement that is handed over as a GraphModule."""

    def __init__(self, program):
        self.program = program

    def __call__(self, fx):
        return fx.symbolic_trace(self.program)


def check(program, pattern, replacement, *args, found, **options):
    """The oracle's and our rewrite agree, `found` matches were replaced, and both compute the same."""
    (theirs, their_lines, their_matches), (mine, my_lines, my_matches) = (
        rewrite(importlib.import_module(name), program, pattern, replacement, **options) for name in FX
    )
    assert my_lines == their_lines
    assert my_matches == their_matches
    assert len(my_matches) == found
    if args:
        torch.testing.assert_close(mine(*args), theirs(*args), rtol=0, atol=0)
    return mine


X, Y = torch.rand(1, 3), torch.rand(1, 3)
