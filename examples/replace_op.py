"""Replace an operation that programs write in several ways.

Run it with `python examples/replace_op.py`.
"""

import operator

import torch

import fxjit.fx as fx


class Model(torch.nn.Module):
    def forward(self, x, y):
        return (x + y) + torch.add(x, y) + x.add(y)


# x + y, torch.add(x, y) and x.add(y) are three kinds of nodes.
ADDITIONS = {("call_function", operator.add), ("call_function", torch.add), ("call_method", "add")}


def replace_additions(module: fx.GraphModule) -> int:
    """Every addition becomes torch.bitwise_and; returns how many there were."""
    count = 0
    for node in module.graph.nodes:
        if (node.op, node.target) not in ADDITIONS:
            continue
        with module.graph.inserting_after(node):
            new = module.graph.call_function(torch.bitwise_and, node.args, node.kwargs)
        node.replace_all_uses_with(new)
        module.graph.erase_node(node)  # possible once nobody uses it
        count += 1
    module.graph.lint()
    module.recompile()
    return count


def main():
    module = fx.symbolic_trace(Model())
    print(f"== before\n{module.graph}\n")
    assert replace_additions(module) == 5
    print(f"== after\n{module.graph}")
    x, y = torch.randint(0, 16, (8,)), torch.randint(0, 16, (8,))
    assert torch.equal(module(x, y), x & y)


if __name__ == "__main__":
    main()
