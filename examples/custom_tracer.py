"""Change what a Tracer records: open a leaf module, and tag every node that is made.

Run it with `python examples/custom_tracer.py`.
"""

import torch

import fxjit.fx as fx


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.relu = torch.nn.ReLU()

    def forward(self, x):
        return self.relu(self.linear(x)) + 1


class OpenReLU(fx.Tracer):
    """Modules of torch.nn are leaves; this tracer looks into ReLU, where it finds a call of a function."""

    def is_leaf_module(self, m, module_qualified_name):
        return not isinstance(m, torch.nn.ReLU) and super().is_leaf_module(m, module_qualified_name)


class Tagging(fx.Tracer):
    """Every node passes create_node: the one place to mark them all."""

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        node.tag = "input" if kind == "placeholder" else "work"
        return node


def main():
    model, x = Model(), torch.randn(3, 4)
    for tracer in (fx.Tracer(), OpenReLU(), Tagging()):
        module = fx.GraphModule(model, tracer.trace(model))
        print(f"== {type(tracer).__name__}\n{module.graph}\n")
        assert torch.equal(module(x), model(x))
        if isinstance(tracer, OpenReLU):
            assert [n for n in module.graph.nodes if n.target is torch.nn.functional.relu]
            assert not [n for n in module.graph.nodes if n.target == "relu"]
        if isinstance(tracer, Tagging):
            print({n.name: n.tag for n in module.graph.nodes})
            assert {n.tag for n in module.graph.nodes} == {"input", "work"}


if __name__ == "__main__":
    main()
