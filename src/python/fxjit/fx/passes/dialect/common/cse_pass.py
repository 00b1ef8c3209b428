"""Common subexpressions: what is computed twice is computed once."""

import copy

import torch

from ....._C import eliminate_common_subexpressions
from ....graph_module import GraphModule
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_RANDOM = """dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson binomial rrelu
    rand_like rand randint randn randperm""".split()
_INPLACE = "add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_".split()


def get_CSE_banned_ops():
    """The packets of torch.ops.aten that are random or write to their arguments, as torch.fx lists them."""
    return {getattr(torch.ops.aten, name) for name in (*_RANDOM, *_INPLACE)}


class CSEPass(PassBase):
    """CSEPass(banned_ops)(gm): PassResult(a new GraphModule, whether anything was replaced); `gm` stays as it is.

    banned_ops: targets (packets for ATen operators) whose calls are left alone

    Other than torch.fx's pass it may be used on any graph: calls with effects or random results, calls of modules, and
    everything before the last call that writes to its arguments are left alone whether banned or not, and arguments
    that differ in type only (1, 1.0, True) are not taken for the same.
    """

    def __init__(self, banned_ops=None):
        self.banned_ops = banned_ops or set()
        super().__init__()

    def call(self, graph_module):
        graph = copy.deepcopy(graph_module.graph)
        new = GraphModule(graph_module, graph)
        banned = None
        if self.banned_ops:
            def banned(node):
                return getattr(node.target, "overloadpacket", node.target) in self.banned_ops
        replaced = eliminate_common_subexpressions(graph, banned)
        if replaced:
            new.recompile()
        return PassResult(new, replaced > 0)
