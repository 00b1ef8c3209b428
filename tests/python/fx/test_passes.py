"""ShapeProp, operator signatures and torchbind objects, on both."""

import importlib

import pytest
import torch
from helpers import node_named, targets


def shape_prop(fx):
    return importlib.import_module(fx.__name__ + ".passes.shape_prop")


class Net(torch.nn.Module):
    def __init__(self, conv=torch.nn.Conv2d):
        super().__init__()
        self.conv = conv(5, 5, kernel_size=3)
        self.p = torch.nn.Parameter(torch.zeros(5, 1, 1))

    def forward(self, x):
        return (self.conv(x) + self.p).relu()


def metas(fx, m, *args):
    gm = fx.symbolic_trace(m)
    shape_prop(fx).ShapeProp(gm).propagate(*args)
    return gm, {n.name: n.meta.get("tensor_meta") for n in gm.graph.nodes}


def test_example_shape_prop(fx):
    gm, found = metas(fx, Net(), torch.rand(2, 5, 8, 8))
    assert found["x"].shape == (2, 5, 8, 8) and found["relu"].shape == (2, 5, 6, 6)
    assert found["p"].requires_grad and found["conv"].dtype is torch.float32
    assert node_named(gm.graph, "relu").meta["type"] is torch.Tensor


def test_shape_prop_layout(fx):
    x = torch.rand(2, 5, 8, 8)
    _, plain = metas(fx, Net(), x)
    assert plain["x"].memory_format is torch.contiguous_format
    _, last = metas(fx, Net().to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last))
    assert last["x"].memory_format is torch.channels_last and last["conv"].memory_format is torch.channels_last


def test_shape_prop_of_results_with_names(fx):
    gm = fx.symbolic_trace(lambda x: torch.max(x, 0))
    shape_prop(fx).ShapeProp(gm).propagate(torch.randn(2, 3))
    meta = node_named(gm.graph, "max_1").meta
    assert type(meta["tensor_meta"]) is tuple and [m.shape for m in meta["tensor_meta"]] == [(3,), (3,)]
    assert meta["type"] is torch.return_types.max


def test_shape_prop_aggregate(fx):
    class ReturnTwo(torch.nn.Module):
        def forward(self, x):
            return 3, torch.sum(x)

    class Under(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rt = ReturnTwo()

        def forward(self, x):
            return self.rt(x)

    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, qualname):
            return type(m) is ReturnTwo

    m = Under()
    gm = fx.GraphModule(m, Leaves().trace(m))
    shape_prop(fx).ShapeProp(gm).propagate(torch.rand(3, 4))
    meta = node_named(gm.graph, "rt").meta["tensor_meta"]
    assert meta[0] == 3 and meta[1].shape == torch.Size([])


def test_shape_prop_layout_3d(fx):
    x = torch.rand(2, 5, 6, 6, 6).contiguous(memory_format=torch.channels_last_3d)
    m = Net(torch.nn.Conv3d).to(memory_format=torch.channels_last_3d)
    m.p = torch.nn.Parameter(torch.zeros(5, 1, 1, 1))
    _, found = metas(fx, m, x)
    assert found["x"].memory_format is torch.channels_last_3d


def test_shape_prop_without_data(fx):
    from torch._subclasses import FakeTensorMode

    gm = fx.symbolic_trace(lambda x: (x @ x).sum(0))
    out = shape_prop(fx).ShapeProp(gm, fake_mode=FakeTensorMode()).propagate(torch.rand(3, 3))
    assert type(out).__name__ == "FakeTensor" and node_named(gm.graph, "matmul").meta["tensor_meta"].shape == (3, 3)


def test_shape_prop_names_the_node_that_fails(fx, capsys):
    gm = fx.symbolic_trace(lambda x: x @ x)
    with pytest.raises(RuntimeError, match="ShapeProp error for: node=%matmul"):
        shape_prop(fx).ShapeProp(gm).propagate(torch.rand(2, 3))
    capsys.readouterr()


def test_get_torch_func_signature(fx):
    schemas = importlib.import_module(fx.__name__ + ".operator_schemas")
    assert schemas.get_signature_for_torch_op(torch.add)
    assert schemas.get_signature_for_torch_op(len) is None


def test_get_torch_func_signature_exhaustive(fx):
    schemas = importlib.import_module(fx.__name__ + ".operator_schemas")
    x, y = torch.rand(2, 2), torch.rand(2, 2)
    for fn, args, kwargs, expected in [
        (torch.add, (x, y), {}, {"input": x, "other": y}), (torch.sum, (x,), {"dim": 0}, {"input": x, "dim": 0}),
        (torch.nn.functional.relu, (x,), {}, {"input": x}), (torch.clamp, (x, 0), {}, {"input": x, "min": 0}),
    ]:  # fmt: skip
        found = schemas.normalize_function(
            fn, args, kwargs, arg_types=tuple(type(a) for a in args), kwarg_types={k: type(v) for k, v in kwargs.items()},
            normalize_to_only_use_kwargs=True,
        )  # fmt: skip
        assert found is not None and found.args == ()
        assert all(found.kwargs[k] is v for k, v in expected.items())


def test_normalized_arguments_of_nodes(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            return torch.nn.functional.relu(self.linear(input=x), True)

    gm = fx.symbolic_trace(M())
    linear, relu = node_named(gm.graph, "linear"), node_named(gm.graph, "relu")
    assert dict(linear.normalized_arguments(gm).kwargs) == {"input": node_named(gm.graph, "x")}
    found = relu.normalized_arguments(gm, normalize_to_only_use_kwargs=True)
    assert dict(found.kwargs) == {"input": linear, "inplace": True}
    assert node_named(gm.graph, "x").normalized_arguments(gm) is None


def packed_weight():
    weight = torch.quantize_per_tensor(torch.rand(3, 4), 0.1, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(weight, None)


class Quantized(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.packed = packed_weight()

    def forward(self, x):
        return torch.ops.quantized.linear(x, self.packed, 0.1, 0)


def quantized_input():
    return torch.quantize_per_tensor(torch.rand(2, 4), 0.1, 0, torch.quint8)


def test_torchbind_class_attribute_in_fx(fx):
    m = Quantized()
    assert isinstance(m.packed, torch.ScriptObject)
    traced = fx.symbolic_trace(m)
    assert targets(traced.graph, "get_attr") == ["packed"]
    x = quantized_input()
    assert torch.equal(traced(x).int_repr(), m(x).int_repr())


def test_torchbind_class_attribute_in_fx_tensor_arg(fx):
    packed = packed_weight()

    def f(x):
        return torch.ops.quantized.linear(x, packed, 0.1, 0)

    traced = fx.symbolic_trace(f)
    assert targets(traced.graph, "get_attr") == ["_torchbind_obj0"]
    x = quantized_input()
    assert torch.equal(traced(x).int_repr(), f(x).int_repr())
