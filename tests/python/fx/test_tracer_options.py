"""Options of tracers and forms of concrete_args: the same program through torch.fx and through ours, and the graphs,
results, errors and warnings compared."""

import copy
import importlib
import pickle
import math
import statistics
import warnings

import pytest
import torch
from torch import nn


def show(graph):
    return [
        (n.op, n.name, n.target if isinstance(n.target, str) else getattr(n.target, "__name__", "?"), str(n.args),
         str(dict(n.kwargs)), n.type) for n in graph.nodes
    ]  # fmt: skip


def outcome(fx, program):
    """What the program gives, and its warnings; or the class and text of its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = program(fx)
        except Exception as e:  # noqa: BLE001 - any of them is to be the same
            return type(e), str(e)
    return result, [str(w.message) for w in caught]


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.register_buffer("b", torch.ones(2))
        self.p = nn.Parameter(torch.ones(2))
        self.sub = nn.Sequential(nn.ReLU(), nn.Linear(2, 2))

    def forward(self, x):
        return self.sub(self.lin(x) + self.b * self.p)

    def other(self, x):
        return self.lin(x)


class Repeated(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.ReLU())
        self.b = self.a

    def forward(self, x):
        return self.b(self.a(x))


class KnownShapes(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.ones(2, 3))

    def forward(self, x):
        p = self.p
        known = p.shape[0] == 2 and p.dim() == 2 and p.numel() == 6 and p.size()[1] == 3 and p.ndim == p.nelement() - 4
        return x + p if known else x


def tracer(fx, **options):
    return type("T", (fx.Tracer,), options)()


def add(x, y):
    return x + y


def structured(d, l, t):  # noqa: E741
    return d["a"] + l[0] * t[1]


def double(x):
    return x * 2


def root_of(value):
    return math.sqrt(value.size(0)) + math.pi


def concrete(fx, last=3):
    ph = fx.PH
    return {"d": {"a": ph}, "l": [ph, last], "t": (1, ph)}


def run_structured(fx, last):
    traced = fx.symbolic_trace(structured, concrete(fx))
    return traced({"a": torch.ones(2)}, [torch.ones(2), last], (1, torch.ones(2))).tolist()


def fresh_names(fx):
    t = fx.Tracer()
    t.trace(M())
    made = [t.get_fresh_qualname("q")]
    t.root.q0 = 1
    made.append(t.get_fresh_qualname("q"))
    t.root.q1 = t.root.q2 = 1
    return [*made, t.get_fresh_qualname("q")]


def with_hook(fx):
    m = M()
    m.sub.register_forward_hook(lambda module, inputs, output: output + 7)
    return show(fx.Tracer().trace(m))


def pairs(fx):
    class Pair(metaclass=fx.ProxyableClassMeta):
        def __init__(self, a, b):
            self.a, self.b = a, b

        def total(self):
            return self.a + self.b

    return show(fx.Tracer().trace(lambda x: Pair(x, 1).total() + Pair(2, 3).total()))


def lowering_itself(fx):
    class Held:
        def __init__(self, a):
            self.a = a

        def __fx_create_arg__(self, tracer):
            return tracer.create_node("call_function", Held, args=(tracer.create_arg(self.a),), kwargs={})

    return show(fx.Tracer().trace(lambda x: {"held": Held(x)}))


def flags(fx):
    seen = []

    def f(x):
        seen.append((fx._symbolic_trace.is_fx_tracing(), fx._symbolic_trace.is_fx_symbolic_tracing()))
        return x

    fx.Tracer().trace(f)
    return [*seen, fx._symbolic_trace.is_fx_tracing()]


PROGRAMS = {
    "int": lambda fx: show(fx.Tracer().trace(add, {"y": 3})),
    "bool": lambda fx: show(fx.Tracer().trace(add, {"y": True})),
    "float": lambda fx: show(fx.Tracer().trace(add, {"y": 2.5})),
    "str": lambda fx: show(fx.Tracer().trace(lambda x, y: x, {"y": "s"})),
    "None": lambda fx: show(fx.Tracer().trace(lambda x, y: x, {"y": None})),
    "tensor": lambda fx: show(fx.Tracer().trace(add, {"y": torch.ones(2)}))[0],
    "object": lambda fx: show(fx.Tracer().trace(lambda x, y: x, {"y": object})),
    "dtype": lambda fx: show(fx.Tracer().trace(lambda x, y: x.to(y), {"y": torch.float16})),
    "tuple": lambda fx: show(fx.Tracer().trace(add, (fx.PH, 4))),
    "tuple of the wrong length": lambda fx: show(fx.Tracer().trace(add, (fx.PH,))),
    "unknown name": lambda fx: show(fx.Tracer().trace(add, {"z": 3})),
    "structure": lambda fx: show(fx.symbolic_trace(structured, concrete(fx)).graph),
    "structure, run": lambda fx: run_structured(fx, 3),
    "structure, run with another value": lambda fx: run_structured(fx, 4),
    "value, run with another": lambda fx: fx.symbolic_trace(add, {"y": 3})(torch.ones(1), 2),
    "None, run with another": lambda fx: fx.symbolic_trace(lambda x, y: x, {"y": None})(torch.ones(1), 2),
    "keyword only": lambda fx: show(fx.Tracer().trace(lambda x, *, k=3: x + k)),
    "keyword only, fixed": lambda fx: show(fx.Tracer().trace(lambda x, *, k=3: x + k, {"k": 5})),
    "positional only": lambda fx: show(fx.Tracer().trace(eval("lambda x, /, y: x + y"))),
    "default, fixed": lambda fx: show(fx.Tracer().trace(lambda x, y=7: x + y, {"y": 7})),
    "traced_func_name": lambda fx: show(tracer(fx, traced_func_name="other").trace(M())),
    "unknown traced_func_name": lambda fx: show(tracer(fx, traced_func_name="nothing").trace(M())),
    "proxy_buffer_attributes": lambda fx: show(tracer(fx, proxy_buffer_attributes=True).trace(M())),
    "param_shapes_constant": lambda fx: show(fx.Tracer(param_shapes_constant=True).trace(KnownShapes())),
    "autowrap_functions": lambda fx: show(fx.Tracer(autowrap_functions=(double,)).trace(lambda x: double(x) + 1)),
    "autowrap_modules": lambda fx: show(
        fx.Tracer(autowrap_modules=(math, statistics)).trace(lambda x: statistics.mean(x))
    ),
    "math": lambda fx: show(fx.Tracer().trace(root_of)),
    "math, not wrapped": lambda fx: show(fx.Tracer(autowrap_modules=()).trace(root_of)),
    "nn_module_stack": lambda fx: [
        (n.name, list(n.meta.get("nn_module_stack", {}).items())) for n in fx.Tracer().trace(M()).nodes
    ],
    "repeated module": lambda fx: [
        list(n.meta.get("nn_module_stack", {})) for n in fx.Tracer().trace(Repeated()).nodes
    ],
    "check_mutable_operations": lambda fx: tracer(fx, check_mutable_operations=True).trace(lambda x: torch.relu_(x)),
    "check_mutable_operations, pure": lambda fx: show(
        tracer(fx, check_mutable_operations=True).trace(lambda x: torch.relu(x))
    ),
    "fresh names": fresh_names,
    "hooks": with_hook,
    "ProxyableClassMeta": pairs,
    "__fx_create_arg__": lowering_itself,
    "flags": flags,
    "bound method": lambda fx: show(fx.Tracer().trace(lambda x: x.apply_(M().forward))),
    "set": lambda fx: show(fx.Tracer().trace(lambda x: x.apply_({1}))),
    "proxy as a key": lambda fx: show(fx.Tracer().trace(lambda x: {x: 1})),
    "root of a torch module": lambda fx: show(fx.Tracer().trace(nn.Linear(2, 2))),
    "code fields": lambda fx: {k: v for k, v in fx.Tracer().trace(M())._co_fields.items()},
    "structures": lambda fx: show(fx.Tracer().trace(lambda x: {"a": [x, (x, 1)], "b": x[x:2]})),
    "copy of a tracer": lambda fx: show(copy.deepcopy(fx.Tracer()).trace(M())),
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_as_torch_fx(name):
    program = PROGRAMS[name]
    theirs, ours = (outcome(importlib.import_module(m), program) for m in ("torch.fx", "fxjit.fx"))
    assert ours == theirs


def test_stack_traces_are_the_user_s(ours):
    nodes = tracer(ours, record_stack_traces=True).trace(M()).nodes
    lin = next(n for n in nodes if n.name == "lin")
    line = M.forward.__code__.co_firstlineno + 1
    assert f'test_tracer_options.py", line {line}, in forward' in lin.stack_trace
    assert "fxjit" not in lin.stack_trace.replace(__file__, "")
    assert all(n.stack_trace is None for n in ours.Tracer().trace(M()).nodes)


def test_stack_traces_are_read_late(ours):
    """Copies, pickles, printed code and meta have the text, and whatever is asked first."""
    plain = ours.Tracer()
    plain.record_stack_traces = True
    graph = plain.trace(M())
    module = ours.GraphModule(M(), graph)
    copied, pickled = copy.deepcopy(graph), pickle.loads(pickle.dumps(module)).graph
    asked = {n.name: n.stack_trace for n in graph.nodes}
    assert any(asked.values())
    for other in (copied, pickled):
        assert {n.name: n.meta.get("stack_trace") for n in other.nodes} == asked
    assert all(n.stack_trace is n.meta.get("stack_trace") for n in graph.nodes)
    lin = next(n for n in graph.nodes if n.name == "lin")
    lin.stack_trace = "mine"
    assert lin.meta["stack_trace"] == "mine" and next(n for n in copied.nodes if n.name == "lin").stack_trace != "mine"


def test_which_frames_count(ours):
    """The class may say so, and is asked while it traces; the flag for forward alone is read at each node."""
    seen = []

    class T(ours.Tracer):
        record_stack_traces = True

        def _filter_traceback_frames(self, frames):
            seen.append(len(frames))
            return super()._filter_traceback_frames(frames)

    graph = T().trace(M())
    assert len(seen) == len(graph.nodes)
    plain = tracer(ours, record_stack_traces=True)
    assert [n.stack_trace for n in plain.trace(M()).nodes] == [n.stack_trace for n in graph.nodes]
    plain._record_forward_stack_traces_only = True
    for node in plain.trace(M()).nodes:
        lines = (node.stack_trace or "").splitlines()
        assert all(", in forward" in line for line in lines if line.lstrip().startswith("File "))


def test_an_empty_memo_stays_empty():
    """As with torch.fx; one that has entries is told of each node."""
    for name in ("torch.fx", "fxjit.fx"):
        graph = importlib.import_module(name).Tracer().trace(M())
        memo = {}
        graph.__deepcopy__(memo)
        assert memo == {}
        memo = {"entry": 1}
        copied = graph.__deepcopy__(memo)
        for old, new in zip(graph.nodes, copied.nodes):
            assert old.op == "output" or memo[old] is new
