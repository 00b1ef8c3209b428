"""Replace every occurrence of a pattern, where pattern and replacement are written as functions.

Run it with `python examples/subgraph_rewriter_basic_use.py`.
"""

import torch

import fxjit.fx as fx
from fxjit.fx import subgraph_rewriter


class Model(torch.nn.Module):
    def forward(self, x, w1, w2):
        m1 = torch.cat([w1, w2]).sum()
        m2 = torch.cat([w2, w1]).sum()
        return x + torch.max(m1) + torch.max(m2)


def pattern(a, b):
    return torch.cat([a, b]).sum()


def replacement(a, b):
    return a.sum() + b.sum()


def main():
    module = fx.symbolic_trace(Model())
    print(f"== before\n{module.graph}\n")
    matches = subgraph_rewriter.replace_pattern(module, pattern, replacement)
    print(f"== after: {len(matches)} occurrences replaced\n{module.graph}")
    assert len(matches) == 2 and not [n for n in module.graph.nodes if n.target is torch.cat]
    inputs = torch.randn(3), torch.randn(2, 4), torch.randn(5, 4)
    torch.testing.assert_close(module(*inputs), Model()(*inputs))


if __name__ == "__main__":
    main()
