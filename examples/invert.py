"""Build the inverse of a function: walk its graph backwards and replace each operation by its inverse.

Run it with `python examples/invert.py`.
"""

import operator

import torch

import fxjit.fx as fx

INVERSE = {
    operator.add: operator.sub,
    operator.sub: operator.add,
    operator.mul: operator.truediv,
    operator.truediv: operator.mul,
    torch.exp: torch.log,
    torch.log: torch.exp,
    torch.sinh: torch.asinh,
    torch.tanh: torch.atanh,
}


def invert(module: fx.GraphModule) -> fx.GraphModule:
    """The inverse of a chain of invertible operations from one input to one output."""
    graph = fx.Graph()
    value = {}  # node of the old graph → node of the new one that gives its value back
    for node in reversed(module.graph.nodes):
        if node.op == "output":
            value[node.args[0]] = graph.placeholder("y")
        elif node.op == "placeholder":
            graph.output(value[node])
        elif node.op == "call_function" and node.target in INVERSE:
            x, *constants = node.args
            value[x] = graph.call_function(INVERSE[node.target], (value[node], *constants))
        else:
            raise ValueError(f"no inverse is known for {node.format_node()}")
    graph.lint()
    return fx.GraphModule({}, graph)


def main():
    def f(x):
        return torch.exp(torch.tanh(x * 3 - 2)) + 1

    module = fx.symbolic_trace(f)
    inverse = invert(module)
    print(f"== f\n{module.graph}\n\n== its inverse\n{inverse.graph}")
    x = torch.rand(100, dtype=torch.float64)
    torch.testing.assert_close(inverse(f(x)), x)
    torch.testing.assert_close(f(inverse(f(x))), f(x))


if __name__ == "__main__":
    main()
