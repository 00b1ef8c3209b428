"""Find out which module each operation of a network comes from.

Run it with `python examples/module_tracer.py`.
"""

import torch
from torch import nn

import fxjit.fx as fx


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(y)) + x).relu()


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layer1 = Block(8)
        self.layer2 = Block(8)
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(x.mean((2, 3)))


class ModulePathTracer(fx.Tracer):
    """Keeps the path of the module whose forward runs, and notes it for each node that is made meanwhile."""

    def __init__(self):
        super().__init__()
        self.path = ""
        self.origin = {}

    def call_module(self, m, forward, args, kwargs):
        outer, self.path = self.path, self.path_of_module(m)
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.path = outer

    def create_proxy(self, kind, target, args, kwargs, *rest, **options):
        proxy = super().create_proxy(kind, target, args, kwargs, *rest, **options)
        self.origin[proxy.node] = self.path
        return proxy


def main():
    model = ResNet().eval()
    tracer = ModulePathTracer()
    module = fx.GraphModule(model, tracer.trace(model))
    for node in module.graph.nodes:
        if node.op != "output":  # made without a Proxy
            print(f"{node.name:16} {node.op:14} {tracer.origin[node] or '(the root)'}")
    x = torch.randn(2, 3, 16, 16)
    assert torch.equal(module(x), model(x))
    by_name = {n.name: tracer.origin.get(n) for n in module.graph.nodes}
    assert by_name["layer1_conv2"] == "layer1.conv2" and by_name["relu_1"] == "layer1" and by_name["mean"] == ""


if __name__ == "__main__":
    main()
