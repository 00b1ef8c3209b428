"""concrete_args with structure: the GraphModule is called as what was traced, and computes what that computes."""

import collections
import copy
import pickle

import pytest
import torch

import fxjit

A, B, C = torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([3.0])
Point = collections.namedtuple("Point", "x y")


class Dict(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([2.0]))

    def forward(self, d, k):
        return {"r": d["a"] * self.w + d["b"][0], "k": [k]}


class Tuple(torch.nn.Module):
    def forward(self, x):
        return x[0] + x[1]["k"]


class KeywordOnly(torch.nn.Module):
    def forward(self, x, *, y):
        return x["a"] + y


class Default(torch.nn.Module):
    def forward(self, d, k=5):
        return d["a"] + k


class Rest(torch.nn.Module):
    def forward(self, x, *rest, **named):
        return x["a"] + rest[0] * named["z"]


def structured(d, y):
    return d["a"] + d["b"][1] * y


def flagged(x, y, flag):
    return x + y if flag else x - y


def point(p, n):
    return Point(p.x + n, p.y)


def constants(d, s):
    return d["a"] * d["n"] if s == "mul" else d["a"] + d["n"]


def keyword(x, *, d):
    return x + d["a"]


def nested(a, b):
    return a[0][0]["x"] + b[1], {"y": [a[1], b[0]]}


def nothing(d, x):
    return x + 1


def tuple_and_dict(t, d):
    return t[0] - d["a"] * d["b"]


def called_self(self, d):
    return self - d["a"]


def call(*args, **kwargs):
    return args, kwargs


# what is traced, concrete_args with P for PH, calls that fit, calls that do not
CONVENTIONS = {
    "module, dict": (Dict, lambda P: {"d": {"a": P, "b": (P, P)}}, [
        call({"a": A, "b": (B, C)}, 5), call(k=B, d={"b": (C, A), "a": A}), call({"a": A, "b": (B, C)}, k=1)],
        [call({"a": A}, 5), call(A, 5), call({"a": A, "b": (B, C)})]),
    "module, tuple": (Tuple, lambda P: {"x": (P, {"k": P})}, [call((A, {"k": B})), call(x=(A, {"k": B}))],
                      [call((A, B)), call((A, {"q": B}))]),
    "module, all arguments": (Tuple, lambda P: ((P, {"k": P}),), [call((A, {"k": B}))], []),
    "module, keyword only": (KeywordOnly, lambda P: {"x": {"a": P}}, [call({"a": A}, y=B)], [call({"a": A})]),
    "function, dict": (lambda: structured, lambda P: {"d": {"a": P, "b": [P, P]}}, [
        call({"a": A, "b": [B, C]}, A), call({"b": [B, C], "a": A}, A), call(y=C, d={"a": A, "b": [B, C]})], [call({"a": A}, A)]),
    "flag": (lambda: flagged, lambda P: {"flag": True}, [call(A, B, True)], [call(A, B, False), call(A, B)]),
    "namedtuple": (lambda: point, lambda P: {"p": Point(P, P)}, [call(Point(A, B), C)], []),
    "constants": (lambda: constants, lambda P: {"d": {"a": P, "n": 3}, "s": "mul"}, [call({"a": A, "n": 3}, "mul")],
                  [call({"a": A, "n": 4}, "mul"), call({"a": A, "n": 3}, "add")]),
    "function, keyword only": (lambda: keyword, lambda P: {"d": {"a": P}}, [call(A, d={"a": B})], [call(A)]),
    "nested": (lambda: nested, lambda P: {"a": (({"x": P},), P), "b": [P, P]}, [
        call((({"x": A},), B), [C, A]), call(b=[C, A], a=(({"x": A},), B))], [call((({"x": A},),), [C, A])]),
    "empty": (lambda: nothing, lambda P: {"d": {}}, [call({}, A)], []),
}  # fmt: skip
# those that torch.fx traces but cannot call, or not at all
OURS = {
    "default": (Default, lambda P: {"d": {"a": P}}, [call({"a": A}), call({"a": A}, 7), call(d={"a": A}, k=7)], [call()]),
    "starred": (Rest, lambda P: {"x": {"a": P}}, [call({"a": A}, B, z=C), call({"a": A}, B, C, z=C, q=A)], [call()]),
    "a parameter called self": (lambda: called_self, lambda P: {"d": {"a": P}}, [call(A, {"a": B})], []),
    "tuple and dict": (lambda: tuple_and_dict, lambda P: {"t": (P,), "d": {"a": P, "b": P}}, [call((A,), {"a": B, "b": C})],
                       [call((A,), {"a": B})]),
}


def traced(fx, make, concrete):
    root = make()
    return root, fx.symbolic_trace(root, concrete_args=concrete(fx.PH))


def check(run, root, fitting, other):
    for args, kwargs in fitting:
        torch.testing.assert_close(run(*args, **kwargs), root(*args, **kwargs))
    for args, kwargs in other:
        with pytest.raises(Exception):  # noqa: B017 - torch.fx's are of many kinds
            run(*args, **kwargs)


WAYS = {
    "call": lambda fx, gm: gm,
    "deepcopy": lambda fx, gm: copy.deepcopy(gm),
    "transform": lambda fx, gm: fx.Transformer(gm).transform(),
    "interpret": lambda fx, gm: lambda *args: fx.Interpreter(gm).run(*args),
}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("name", list(CONVENTIONS))
def test_both(name, way, fx):
    make, concrete, fitting, other = CONVENTIONS[name]
    root, gm = traced(fx, make, concrete)
    if way == "interpret":  # takes no keywords, and torch.fx's does not look at structures
        fitting, other = [c for c in fitting if not c[1] and list(c[0][:1]) != [{"b": [B, C], "a": A}]][:1], []
    check(WAYS[way](fx, gm), root, fitting, other)


def test_names_and_results_are_torchs():
    for make, concrete, fitting, _ in CONVENTIONS.values():
        pair = [traced(fx, make, concrete)[1] for fx in (torch.fx, fxjit.fx)]
        assert [n.name for n in pair[0].graph.nodes] == [n.name for n in pair[1].graph.nodes]
        args, kwargs = fitting[0]
        torch.testing.assert_close(pair[1](*args, **kwargs), pair[0](*args, **kwargs))


@pytest.mark.parametrize("way", ["call", "deepcopy", "transform", "compiled", "pickled", "to torch and back"])
@pytest.mark.parametrize("name", [*CONVENTIONS, *OURS])
def test_ours(name, way):
    make, concrete, fitting, other = {**CONVENTIONS, **OURS}[name]
    root, gm = traced(fxjit.fx, make, concrete)
    if way == "to torch and back" and name in OURS and name != "tuple and dict":
        pytest.skip("torch.fx generates no code for these parameters")
    more = {
        "compiled": lambda fx, gm: fxjit.compile(gm),
        "pickled": lambda fx, gm: pickle.loads(pickle.dumps(gm)),
        "to torch and back": lambda fx, gm: fx.GraphModule.from_torch(gm.to_torch()),
    }
    run = {**WAYS, **more}[way](fxjit.fx, gm)
    with torch.no_grad():
        for _ in range(2):
            check(run, root, fitting, other)


@pytest.mark.parametrize("name", list(CONVENTIONS))
def test_from_and_to_torch(name):
    make, concrete, fitting, other = CONVENTIONS[name]
    root, theirs = traced(torch.fx, make, concrete)
    check(fxjit.fx.GraphModule.from_torch(theirs), root, fitting, other)
    root, ours = traced(fxjit.fx, make, concrete)
    check(ours.to_torch(), root, fitting, other)


def test_a_graph_that_dynamo_made():
    """Its in_spec is that of the arguments and of the keywords."""
    def program(x, scale=2.0, *, d):
        return {"y": x * scale + d["a"]}

    theirs, _ = torch._dynamo.export(program)(A, d={"a": B})
    ours = fxjit.fx.GraphModule.from_torch(theirs)
    for gm in (ours, ours.to_torch(), copy.deepcopy(ours), fxjit.compile(ours)):
        torch.testing.assert_close(gm(C, d={"a": A}), program(C, d={"a": A}))


def test_guards_and_structure():
    def program(d, n):
        return d["a"] + 1 if d["a"].size(0) > 3 else d["b"]

    P = fxjit.fx.PH
    big, small = torch.ones(4), torch.ones(2)
    gm = fxjit.fx.symbolic_trace(program, {"d": {"a": P, "b": P}}, example_inputs=({"a": big, "b": small}, 1))
    assert [str(g) for g in gm.graph.guards] == ["d_1.size(0) > 3"]
    assert torch.equal(gm({"a": big, "b": small}, 2), big + 1)
    with pytest.raises(fxjit.fx.GuardError, match=r"called with d_1 = float32\[2\]"):
        gm({"a": small, "b": small}, 2)
