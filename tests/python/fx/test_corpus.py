"""A part of the corpus (tools/corpus) that takes seconds: torch.nn.functional, and a model of each kind of torchvision."""

import pathlib
import sys

import pytest
import torch

import fxjit.fx

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "corpus"))

import compare  # noqa: E402
import families  # noqa: E402

MODELS = """alexnet convnext_tiny deeplabv3_resnet50 densenet121 efficientnet_b0 fasterrcnn_resnet50_fpn googlenet inception_v3
lraspp_mobilenet_v3_large maxvit_t mnasnet0_5 mobilenet_v2 mvit_v1_b r3d_18 raft_small regnet_y_400mf resnet18 resnext50_32x4d
shufflenet_v2_x0_5 squeezenet1_0 ssd300_vgg16 swin_t swin_v2_t swin3d_t vgg11 vit_b_16""".split()
FUNCTIONALS = {case.name: case for case in families.functional_cases(False)}
UNTRACEABLE = {"fasterrcnn_resnet50_fpn", "ssd300_vgg16", "raft_small"}  # iteration over and branches on values


@pytest.fixture(scope="module")
def torchvision_models():
    return {case.name: case for case in families.torchvision_cases(False)}


@pytest.mark.parametrize("name", MODELS)
def test_torchvision_models_trace_alike(torchvision_models, name):
    outcome = compare.compare(torchvision_models[name])
    assert outcome.verdict == (compare.SAME_ERROR if name in UNTRACEABLE else compare.SAME), outcome


@pytest.mark.parametrize("name", sorted(FUNCTIONALS))
def test_functionals_trace_alike(name):
    with families.bodies_only():
        outcome = compare.compare(FUNCTIONALS[name])
    assert outcome.verdict in (compare.SAME, compare.SAME_ERROR), outcome


def test_functionals_that_trace_and_those_that_cannot():
    assert len(FUNCTIONALS) > 100
    with families.bodies_only():
        traced = sum(compare.compare(case).verdict == compare.SAME for case in FUNCTIONALS.values())
    assert traced >= 15


def first(x):
    return x.relu() + 1


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x.relu() + 2,
        lambda x: x.relu() + 1.0,
        lambda x: (x.relu() + 1,),
        lambda x: x.neg() + 1,
        lambda x: torch.relu(x) + 1,
        lambda x: 1 + x.relu(),
        lambda y: y.relu() + 1,
        lambda x: x.relu() + 1 + 0,
        lambda x: x.relu().add(1),
    ],
)
def test_a_difference_is_seen(fx, other):
    same = compare.graph_difference(fx.symbolic_trace(first).graph, fx.Tracer().trace(first))
    assert same == "" and compare.graph_difference(fx.Tracer().trace(first), fx.Tracer().trace(other)) != ""


def test_meta_types_and_users_are_compared(fx):
    graphs = [fx.Tracer().trace(first) for _ in range(3)]
    next(iter(graphs[1].nodes)).type = int
    list(graphs[2].nodes)[1].meta["nn_module_stack"] = {"a": ("b", torch.nn.Linear)}
    assert "type" in compare.graph_difference(graphs[0], graphs[1])
    assert "module stack" in compare.graph_difference(graphs[0], graphs[2])


def raising(error):
    def program(x):
        raise error

    return program


def test_errors_are_compared_by_class():
    class Odd(ValueError):
        pass

    assert compare.compare(compare.Case("v", lambda: (raising(ValueError("a")), None))).verdict == compare.SAME_ERROR
    judged = compare.judge("n", None, ValueError("a"), None, KeyError("b"))
    assert judged.verdict == compare.DIFFERS
    assert compare.judge("n", None, ValueError("a"), None, Odd("b")).verdict == compare.SAME_ERROR
    assert compare.judge("n", None, Odd("a"), None, ValueError("b")).verdict == compare.DIFFERS


def test_where_a_c_function_refuses_a_proxy_ours_gets_further():
    refused = TypeError("descriptor 'item' for 'torch._C.TensorBase' objects doesn't apply to a 'Proxy' object")
    graph = fxjit.fx.Tracer().trace(first)
    assert compare.judge("n", None, refused, graph, None).verdict == compare.FURTHER
    assert compare.judge("n", None, refused, None, fxjit.fx.TraceError("branch")).verdict == compare.FURTHER
    assert compare.judge("n", None, refused, None, KeyError("k")).verdict == compare.DIFFERS
    assert compare.judge("n", None, TypeError("a"), graph, None).verdict == compare.DIFFERS
    case = compare.Case("item", lambda: (lambda x: torch.Tensor.flatten(x), None))
    assert compare.compare(case).verdict == compare.FURTHER


def test_a_program_that_caches_what_it_saw_is_made_twice():
    class Caching(torch.nn.Module):
        def forward(self, x):
            if not hasattr(self, "kept"):
                self.kept = x.neg()
            return self.kept + x

    assert compare.compare(compare.Case("c", lambda: (Caching(), None))).verdict == compare.SAME


def test_libraries_that_ask_for_torch_fx_proxies_recognise_ours(fx):
    class Mine(fx.Proxy):
        pass

    proxy = fx.Proxy(fx.Graph().placeholder("x"))
    assert isinstance(proxy, torch.fx.Proxy) and isinstance(proxy.shape, torch.fx.proxy.Attribute)
    assert isinstance(proxy, fx.Proxy) and isinstance(proxy.shape, fx.proxy.Attribute)
    assert not isinstance(proxy, (torch.Tensor, fx.proxy.Attribute)) and Mine(proxy.node).__class__ is Mine
