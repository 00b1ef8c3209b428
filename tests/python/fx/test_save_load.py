"""Files of fxjit.fx.save: what comes back, and what a damaged or hostile file does (nothing)."""

import io
import os
import sys
import zipfile

import pytest
import torch
from fxjit import fx


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), torch.nn.BatchNorm2d(2), torch.nn.GELU("tanh")
        )
        self.lstm = torch.nn.LSTM(4, 4, bidirectional=True)
        self.tied = self.features[0]
        self.scale = torch.nn.Parameter(torch.tensor(2.0), requires_grad=False)
        self.register_buffer("offset", torch.arange(4.0)[::2], persistent=False)

    def forward(self, x, k=1.5):
        y = self.features(x) + self.tied(x)
        return self.lstm(y.flatten(0, 2))[0].sum(-1) * self.scale, y.half() * k, self.offset, torch.arange(3) + 1


def saved(gm, **kw):
    buffer = io.BytesIO()
    fx.save(gm, buffer, **kw)
    return buffer.getvalue()


def loaded(data, **kw):
    return fx.load(io.BytesIO(data), **kw)


@pytest.fixture(scope="module")
def example():
    torch.manual_seed(0)
    gm = fx.symbolic_trace(Net().eval())
    gm.add_submodule("tied", gm.get_submodule("features.0"))
    return gm, saved(gm)


def test_what_comes_back(example, tmp_path):
    gm, _ = example
    fx.save(gm, tmp_path / "net.fx")
    new = fx.load(tmp_path / "net.fx")
    assert str(new.graph) == str(gm.graph) and type(new).__name__ == type(gm).__name__
    for a, b in ((new.state_dict(), gm.state_dict()), (dict(new.named_buffers()), dict(gm.named_buffers()))):
        assert list(a) == list(b)
        assert all(torch.equal(a[k], b[k]) and a[k].stride() == b[k].stride() for k in a)
    assert [(n, p.requires_grad) for n, p in new.named_parameters()] == [
        (n, p.requires_grad) for n, p in gm.named_parameters()
    ]
    assert [(n, type(m).__name__, m.training) for n, m in new.named_modules()] == [
        (n, type(m).__name__, m.training) for n, m in gm.named_modules()
    ]
    assert new.tied is new.features.get_submodule("0") and str(new.features) == str(gm.features)
    x = torch.randn(1, 1, 4, 4)
    torch.testing.assert_close(new(x), gm(x), rtol=0, atol=0)
    new.train()
    new(x)[0].sum().backward()


def test_shared_memory_and_element_types():
    base = torch.arange(12.0).reshape(3, 4)
    root = {"a": base, "b": base.t()[1:], "c": base.bfloat16(), "d": torch.ones(2, dtype=torch.complex64).conj(),
            "e": torch.empty(0, 3), "f": torch.ones(3).to(torch.float8_e5m2)}  # fmt: skip
    graph = fx.Graph()
    graph.output([graph.get_attr(name) for name in root])
    new = loaded(saved(fx.GraphModule(root, graph)))
    for name, t in root.items():
        read = getattr(new, name)
        assert read.dtype == t.dtype and read.shape == t.shape and read.stride() == t.stride()
        assert torch.equal(read.view(torch.uint8) if name == "f" else read, t.view(torch.uint8) if name == "f" else t)
    new.a[0, 1] = 100
    assert new.b[0, 0] == 100


def scaled(x):
    return x * 2


class Custom(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.settings = {"a": [1, (2.0, None)]}

    def forward(self, x):
        return scaled(x) + self.settings["a"][0]


class Leaves(fx.Tracer):
    def is_leaf_module(self, m, name):
        return True


def custom_module():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(scaled, (graph.call_module("custom", (x,)),)))
    return fx.GraphModule({"custom": Custom()}, graph)


def test_functions_and_classes_of_the_user_are_passed():
    data = saved(custom_module())
    with pytest.raises(fx.FormatError, match="scaled.* is not among the functions"):
        loaded(data)
    with pytest.raises(fx.FormatError, match="the module class .*Custom' is not one of torch.nn: pass it in globals"):
        loaded(data, globals=[scaled])
    new = loaded(data, globals=[scaled, Custom])
    assert new(torch.ones(1)) == 6 and new.custom.settings == {"a": [1, (2.0, None)]}
    assert type(new.custom.settings) is dict and type(new.custom.settings["a"]) is list


def test_nested_graph_modules_and_plain_attributes():
    inner = fx.symbolic_trace(lambda x: x + 1)
    inner.note = "kept"
    graph = fx.Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
    new = loaded(saved(fx.GraphModule({"inner": inner}, graph, "Outer")))
    assert type(new).__name__ == "Outer" and isinstance(new.inner, fx.GraphModule) and new.inner.note == "kept"
    assert new(torch.ones(1)) == 2


def test_what_cannot_be_saved():
    gm = fx.symbolic_trace(lambda x: x)
    gm.register_forward_hook(lambda *a: None)
    with pytest.raises(fx.FormatError, match="module '' has hooks"):
        saved(gm)
    gm = fx.symbolic_trace(lambda x: x)
    gm.lock = object()
    with pytest.raises(fx.FormatError, match="attribute 'lock': .* a value of type object"):
        saved(gm)
    gm = fx.symbolic_trace(lambda x: x)
    gm.register_buffer("sparse", torch.eye(2).to_sparse())
    with pytest.raises(fx.FormatError, match="sparse"):
        saved(gm)
    with pytest.raises(TypeError, match="writes GraphModules, not Linear"):
        saved(torch.nn.Linear(1, 1))


def rewritten(data, changes):
    """The file with records replaced, checksums right: what an attacker would write."""
    source, out = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for info in source.infolist():
            change = changes.get(info.filename.partition("/")[2], lambda record: record)
            target.writestr(info.filename, change(source.read(info)))
    return out.getvalue()


def replacing(old, new):
    def change(record):
        assert old in record
        return record.replace(old, new)

    return change


ATTACKS = {
    "a function": ("module.fx", b"_operator:mul(", b"os:system("),
    "a class": ("module.fx", b'"torch.nn.modules.conv:Conv2d"', b'"subprocess:Popen"'),
    "a class that is no module": ("module.fx", b'"torch.nn.modules.conv:Conv2d"', b'"torch.nn.modules.conv:math"'),
    "a class by a path": ("module.fx", b'"torch.nn.modules.conv:Conv2d"', b'"torch.nn.modules.conv:torch.hub.load"'),
    "a method of a module": ("module.fx", b'"padding_mode": "circular"', b'"forward": "circular"'),
    "a hook": ("module.fx", b'"padding_mode": "circular"', b'"_forward_hooks": {1: @name("torch:relu")}'),
    "a dunder": ("module.fx", b'"padding_mode": "circular"', b'"__class__": 1'),
    "a class name": ("module.fx", b'"class": "Net"', b'"class": 5'),
    "a version": ("module.fx", b'"version": 1', b'"version": 3'),
    "a kind": ("module.fx", b"fxjit.GraphModule", b"something else"),
    "a format": ("module.fx", b"fx 1\n", b"fx 9\n"),
    "a module of its own": ("module.fx", b'"modules": {"0": 0', b'"modules": {"0": 99'),
    "a missing target": ("module.fx", b"call_module lstm", b"call_module gone"),
    "a target that is a tensor": ("module.fx", b"call_module lstm", b"call_module scale"),
    "a size": ("tensors.fx", b"(2, 1, 3, 3)", b"(2, 1, 3, 3000)"),
    "a huge size": ("tensors.fx", b"(2, 1, 3, 3)", b"(2, 1, 3, 9223372036854775807)"),
    "a negative stride": ("tensors.fx", b"(9, 9, 3, 1)", b"(9, 9, 3, -1)"),
    "a dtype": ("tensors.fx", b"(torch.float32, (2, 1, 3, 3)", b"(None, (2, 1, 3, 3)"),
    "no rows": ("tensors.fx", b"value tensors = ", b"value others = "),
    "nesting": ("tensors.fx", b"value tensors = ", b"value tensors = " + b"[" * 100000),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_files(example, attack, monkeypatch):
    monkeypatch.setattr(os, "system", lambda *a: pytest.fail("the file was run"))
    record, old, new = ATTACKS[attack]
    before = set(sys.modules)
    with pytest.raises(fx.FormatError):
        loaded(rewritten(example[1], {record: replacing(old, new)}))
    assert not [name for name in set(sys.modules) - before if not name.startswith("encodings.")]


def test_compressed_records_are_refused(example):
    source, out = zipfile.ZipFile(io.BytesIO(example[1])), io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for info in source.infolist():
            target.writestr(info.filename, source.read(info))
    with pytest.raises(fx.FormatError, match="is compressed"):
        loaded(out.getvalue())


def test_truncated_files(example):
    data = example[1]
    for size in [*range(0, 200, 7), *range(200, len(data) - 1, len(data) // 40)]:
        with pytest.raises(fx.FormatError):
            loaded(data[:size])


def test_flipped_bits(example):
    """A flipped bit is noticed by a checksum, or is where nothing is read: then the module is the same."""
    gm, data = example
    generator, noticed = torch.Generator().manual_seed(0), 0
    for _ in range(150):
        at = int(torch.randint(len(data), (), generator=generator))
        damaged = bytearray(data)
        damaged[at] ^= 1 << int(torch.randint(8, (), generator=generator))
        try:
            new = loaded(bytes(damaged))
        except fx.FormatError:
            noticed += 1
        else:
            assert str(new.graph) == str(gm.graph)
            assert all(torch.equal(a, b) for a, b in zip(new.state_dict().values(), gm.state_dict().values()))
    assert noticed > 20


def test_a_missing_file():
    with pytest.raises(FileNotFoundError):
        fx.load("/nowhere/at/all")
