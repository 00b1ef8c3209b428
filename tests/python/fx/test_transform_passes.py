"""Fusion, normalisation and the small passes, against torch.fx."""

import operator
import typing

import fxjit
import pytest
import torch
import torchvision
from helpers import calls, part


# ---- optimisation ----


def test_fuse_conv_bn(fx):
    m = torchvision.models.resnet18(weights=None).eval()
    for norm in m.modules():
        if isinstance(norm, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(norm.weight)
            torch.nn.init.uniform_(norm.running_mean)
    fused = part(fx, "experimental.optimization").fuse(m)
    assert not any(isinstance(s, torch.nn.BatchNorm2d) for n in fused.graph.nodes if n.op == "call_module" for s in [fused.get_submodule(n.target)])
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(fused(x), m(x), rtol=1e-3, atol=1e-3)
    assert any(isinstance(s, torch.nn.BatchNorm2d) for s in m.modules())


def test_fuse_linear_bn_and_shared_layers(ours):
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = torch.nn.Conv1d(2, 2, 1), torch.nn.BatchNorm1d(2)
            self.lin, self.norm = torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)

        def forward(self, x):
            y = self.bn(self.conv(x)) + self.conv(x)
            return self.norm(self.lin(y[:, 0]))

    m = Shared().eval()
    torch.nn.init.uniform_(m.bn.running_mean)
    fused = part(ours, "experimental.optimization").fuse(m)
    assert [n.target for n in fused.graph.nodes if n.op == "call_module"] == ["conv", "bn", "conv", "lin"]
    x = torch.randn(3, 2, 4)
    torch.testing.assert_close(fused(x), m(x))


def test_remove_dropout_and_extract_subgraph(fx):
    optimization = part(fx, "experimental.optimization")
    m = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(), torch.nn.ReLU())
    gm = optimization.remove_dropout(m)
    assert [n.target for n in gm.graph.nodes if n.op == "call_module"] == ["0", "2"]
    nodes = [n for n in gm.graph.nodes if n.op == "call_module"]
    piece = optimization.extract_subgraph(gm, nodes, [list(gm.graph.nodes)[0]], nodes[-1:])
    x = torch.randn(2, 4)
    assert torch.equal(piece(x)[0], gm(x))


def test_optimize_for_inference(ours):
    m = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Dropout2d()).eval()
    torch.nn.init.uniform_(m[1].running_mean)
    optimize = part(ours, "experimental.optimization").optimize_for_inference
    gm = optimize(m)
    assert [n.target for n in calls(gm.graph)] == ["0"]
    x = torch.randn(1, 1, 5, 5)
    torch.testing.assert_close(gm(x), m(x))
    kept = optimize(m, {"conv_bn_fuse": False, "remove_dropout": False})
    assert [n.target for n in calls(kept.graph)] == ["0", "1", "2"]
    with pytest.raises(RuntimeError, match="no pass named fuse"):
        optimize(m, {"fuse": True})


# ---- normalisation ----


def test_normalize_args_of_resnet18():
    m = torchvision.models.resnet18(weights=None).eval()
    x = torch.randn(1, 3, 32, 32)
    found = []
    for fx in (torch.fx, fxjit.fx):
        gm = fx.symbolic_trace(m)
        part(fx, "passes.shape_prop").ShapeProp(gm).propagate(x)
        normal = part(fx, "experimental.normalize").NormalizeArgs(gm).transform()
        normal.graph.lint()
        with torch.no_grad():
            assert torch.equal(normal(x), m(x))
        found.append([(n.op, str(n.target), fx.map_arg(n.args, str), fx.map_arg(dict(n.kwargs), str)) for n in normal.graph.nodes])
    assert found[0] == found[1]


def test_normalize_operators(fx):
    def f(x, y):
        return torch.add(x, y), torch.mul(x, 2), torch.div(x, y), torch.ge(x, y), torch.relu(x)

    gm = part(fx, "experimental.normalize").NormalizeOperators(fx.symbolic_trace(f)).transform()
    assert [n.target for n in calls(gm.graph)] == [operator.add, operator.mul, operator.truediv, operator.ge, torch.relu]


def test_normalize_operators_keeps_further_arguments(ours):
    gm = ours.symbolic_trace(lambda x, y: torch.add(x, y, alpha=2))
    gm = part(ours, "experimental.normalize").NormalizeOperators(gm).transform()
    assert gm(torch.ones(1), torch.ones(1)) == 3


def test_annotate_types_with_schema(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.w = torch.nn.Linear(2, 2), torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return torch.nn.functional.relu(self.lin(x)) + self.w

    gm = part(fx, "experimental.schema_type_annotation").AnnotateTypesWithSchema(fx.symbolic_trace(M())).transform()
    types = {n.name: n.type for n in gm.graph.nodes}
    assert types["lin"] is types["relu"] is types["w"] is torch.Tensor and types["x"] is None


def test_normalized_arguments_of_nodes(fx):
    gm = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    lin = calls(gm.graph)[0]
    pair = lin.normalized_arguments(gm, normalize_to_only_use_kwargs=True)
    assert pair.args == () and list(pair.kwargs) == ["input"]
    graph = fx.Graph()
    x = graph.placeholder("x")
    add = graph.call_function(torch.ops.aten.add.Tensor, (x, 1))
    assert list(add.normalized_arguments(gm, normalize_to_only_use_kwargs=True).kwargs) == ["input", "other", "alpha"]


# ---- small passes ----


class Sequence(typing.NamedTuple):
    first: torch.Tensor
    second: int


def test_annotate_getitem_nodes(fx):
    graph = fx.Graph()
    wanted = []
    cases = [
        (typing.Tuple[int, torch.Tensor], 1, torch.Tensor), (tuple[int, ...], 3, int), (typing.List[str], 0, str),
        (list[float], 2, float), (Sequence, 1, int), (torch.Tensor, 0, None), (None, 0, None),
    ]  # fmt: skip
    for i, (kind, index, item) in enumerate(cases):
        x = graph.placeholder(f"x{i}", type_expr=kind)
        wanted.append((graph.call_function(operator.getitem, (x, index)), item))
    part(fx, "passes.annotate_getitem_nodes").annotate_getitem_nodes(graph)
    assert all(node.type is item for node, item in wanted)
    bad = fx.Graph()
    bad.call_function(operator.getitem, (bad.placeholder("x", type_expr=typing.Tuple[int, int]), 2))
    with pytest.raises(AssertionError, match="out of range"):
        part(fx, "passes.annotate_getitem_nodes").annotate_getitem_nodes(bad)


def test_sizes_and_targets(fx):
    manipulation = part(fx, "passes.graph_manipulation")
    gm = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU()))
    manipulation.get_size_of_all_nodes(gm, [torch.randn(2, 4)])
    sizes = {n.name: tuple(n.size_bytes) for n in gm.graph.nodes if n.op != "output"}
    assert sizes == {"input_1": (32, 32), "_0": (64, 64 + 160), "_1": (64, 64)}
    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    manipulation.replace_target_nodes_with(gm, "call_function", torch.relu, "call_function", torch.sigmoid)
    assert torch.equal(gm(torch.ones(2)), torch.sigmoid(torch.ones(2)) + 1)
    with pytest.raises(RuntimeError, match="no tensor metadata"):
        manipulation.get_tensor_meta(list(gm.graph.nodes)[0])


def test_attributes_for_lowering(fx):
    fetch = part(fx, "passes.param_fetch")
    gm = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Conv2d(1, 1, 3), torch.nn.ReLU()))
    fetch.lift_lowering_attrs_to_nodes(gm)
    conv = calls(gm.graph)[0]
    assert conv.attrs_for_lowering["kernel_size"] == (3, 3) and conv.attrs_for_lowering["weight"] is gm.get_submodule("0").weight
    with pytest.raises(RuntimeError, match="module_fetch_book"):
        fetch.extract_attrs_for_lowering(torch.nn.GELU())


def test_fake_tensor_prop(fx):
    gm = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten()))
    module = part(fx, "passes.fake_tensor_prop")
    mode = torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
    result = module.FakeTensorProp(gm, mode).propagate(torch.randn(2, 1, 8, 8))
    plain = fx.symbolic_trace(lambda x: x.t())
    assert module.FakeTensorProp(plain).propagate(torch.randn(2, 3)).shape == (3, 2)
    values = {n.name: n.meta["val"] for n in gm.graph.nodes}
    assert type(result).__name__ == "FakeTensor" and values["_0"].shape == (2, 2, 6, 6) and values["_1"].shape == (2, 72)
    with mode:
        x = torch.empty(1, 1, 5, 5)
    assert module.FakeTensorProp(gm, mode).propagate_dont_convert_inputs(x).fake_mode is mode


def test_shape_prop_notes_everything(fx):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 1)

        def forward(self, x, q):
            return self.conv(x), q.view(-1)

    gm = fx.symbolic_trace(M())
    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    part(fx, "passes.shape_prop").ShapeProp(gm).propagate(x, torch.randn(4, 4))
    metas = {n.name: n.meta["tensor_meta"] for n in gm.graph.nodes if n.op != "output"}
    assert metas["conv"].requires_grad and not metas["x"].requires_grad
    assert metas["x"].memory_format is torch.channels_last and metas["conv"].stride == (64, 1, 16, 4)
    quantized = fx.symbolic_trace(lambda q: torch.quantize_per_tensor(q, 0.5, 3, torch.quint8).dequantize())
    part(fx, "passes.shape_prop").ShapeProp(quantized).propagate(torch.randn(4, 4))
    meta = calls(quantized.graph)[0].meta["tensor_meta"]
    assert meta.is_quantized and meta.qparams["scale"] == 0.5 and meta.dtype is torch.quint8
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        part(fx, "passes.shape_prop").ShapeProp(gm, mode).propagate(x, torch.randn(4, 4))


def test_shape_prop_names_the_node_that_fails(fx, capsys):
    gm = fx.symbolic_trace(lambda x: torch.matmul(x, x))
    with pytest.raises(RuntimeError, match="ShapeProp error for: node=%matmul"):
        part(fx, "passes.shape_prop").ShapeProp(gm).propagate(torch.ones(2, 3))
    capsys.readouterr()


# ---- where nodes come from ----


def test_traceback_state_is_shared(fx):
    tb = part(fx, "traceback")
    with tb.preserve_node_meta(), tb.annotate({"stage": 1}):
        gm = fx.symbolic_trace(lambda x: x + 1)
    assert calls(gm.graph)[0].meta["custom"] == {"stage": 1}
    with tb.preserve_node_meta():
        with tb.set_current_meta(calls(gm.graph)[0], "mine"):
            assert tb.get_current_meta()["from_node"][-1].pass_name == "mine" and isinstance(tb.format_stack(), list)


def test_graph_transform_observer(ours, tmp_path):
    observe = part(ours, "passes.graph_transform_observer").GraphTransformObserver
    gm = ours.symbolic_trace(lambda x: torch.relu(x) + 1)
    count = observe.get_current_pass_count()

    def replace(gm):
        relu = calls(gm.graph)[0]
        with gm.graph.inserting_before(relu):
            new = gm.graph.call_function(torch.sigmoid, relu.args)
        relu.replace_all_uses_with(new)
        gm.graph.erase_node(relu)
        return "done"

    with_log = observe(gm, "swap", log_url=str(tmp_path))
    assert with_log.apply_gm_pass(replace) == "done"
    assert with_log.created_nodes == {"sigmoid"} and with_log.erased_nodes == {"relu"}
    source = calls(gm.graph)[0].meta["from_node"][-1]
    assert source.name == "relu" and source.pass_name == "swap" and [a.name for a in source.action] == ["REPLACE", "CREATE"]
    assert observe.get_current_pass_count() == count + 1
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".dot", ".dot", ".svg", ".svg"]
    gm.graph.call_function(torch.relu, ())
    assert with_log.created_nodes == {"sigmoid"}  # the hooks are gone
