"""Put an activation that is chosen at run time behind the output of a module.

Run it with `python examples/wrap_output_dynamically.py`.
"""

import torch

import fxjit.fx as fx

ACTIVATIONS = {
    "relu": lambda x: torch.relu(x),
    "gelu": lambda x: torch.nn.functional.gelu(x),
    "silu": lambda x: x * torch.sigmoid(x),
}


def wrap_output(module: fx.GraphModule, function) -> fx.GraphModule:
    """The module followed by `function`: traced on its own, then called on a Proxy of the last value."""
    traced = fx.symbolic_trace(function)
    output = next(n for n in reversed(module.graph.nodes) if n.op == "output")
    with module.graph.inserting_before(output):
        wrapped = traced(fx.Proxy(output.args[0]))  # records the nodes of `traced` here
    output.args = (wrapped.node,)
    module.graph.lint()
    module.recompile()
    return module


def main():
    model, x = torch.nn.Linear(4, 4), torch.randn(3, 4)

    class Root(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = model

        def forward(self, x):
            return self.linear(x)

    for name, function in ACTIVATIONS.items():
        module = wrap_output(fx.symbolic_trace(Root()), function)
        print(f"== {name}\n{module.graph}\n")
        assert torch.equal(module(x), function(model(x)))


if __name__ == "__main__":
    main()
