"""A compiled GraphModule inside an ordinary nn.Module: machine code that composes with everything else.

Run it with `python examples/native_interpreter.py`.
"""

import torch

import fxjit
import fxjit.fx as fx


class Elementwise(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(8))

    def forward(self, x, y):
        return (x + y) * self.scale + x * 2.5


class Native(torch.nn.Module):
    """Holds the compiled form of the traced module: a child like any other, with the module's parameters."""

    def __init__(self, module: torch.nn.Module):
        super().__init__()
        self.compiled = fxjit.compile(fx.symbolic_trace(module))

    def forward(self, *args):
        return self.compiled(*args)


def main():
    model = Elementwise()
    native = Native(model)
    net = torch.nn.Sequential()  # a module as any other: in containers, with parameters, under other transformations
    net.add_module("native", native)
    print(f"{native.compiled.graph}\n")
    with torch.no_grad():
        for round in range(50):  # sizes vary; one specialisation serves them
            shape = (round % 7 + 2, 8)
            x, y = torch.randn(shape), torch.randn(shape)
            torch.testing.assert_close(native(x, y), model(x, y))
        net.native.compiled.scale.mul_(2)  # parameters are read at each call, and are the model's own
        torch.testing.assert_close(native(x, y), model(x, y))
    print(native.compiled.explain())
    assert list(net.state_dict()) == ["native.compiled.scale"]
    assert native.compiled.explain().specialisations, "the graph was not compiled"


if __name__ == "__main__":
    main()
