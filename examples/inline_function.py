"""Replace the call of a module by what the module does, by calling it with Proxies.

Run it with `python examples/inline_function.py`.
"""

import torch

import fxjit.fx as fx


class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 0.5

    def forward(self, x):
        return torch.sigmoid(x * self.scale) * x


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Gate()

    def forward(self, x):
        return self.gate(x) + self.gate(x + 1)


class GateIsLeaf(fx.Tracer):
    def is_leaf_module(self, m, module_qualified_name):
        return isinstance(m, Gate)


def inline_module(module: fx.GraphModule, path: str):
    """Records the submodule at `path` in place of each of its calls."""
    body, graph = module.get_submodule(path), module.graph
    tracer = fx.proxy.GraphAppendingTracer(graph)
    for node in graph.nodes:
        if node.op == "call_module" and node.target == path:
            with graph.inserting_before(node):
                result = body(*fx.node.map_arg(node.args, lambda n: fx.Proxy(n, tracer)))
            node.replace_all_uses_with(result.node)
            graph.erase_node(node)
    module.recompile()  # until here the module ran its old graph


def main():
    model, x = Model(), torch.randn(8)
    module = fx.GraphModule(model, GateIsLeaf().trace(model))
    print(f"== gate is a leaf\n{module.graph}\n")
    inline_module(module, "gate")
    module.graph.lint()
    print(f"== gate is inlined\n{module.graph}")
    assert not [n for n in module.graph.nodes if n.op == "call_module"]
    assert torch.equal(module(x), model(x))


if __name__ == "__main__":
    main()
