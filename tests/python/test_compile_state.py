"""What a trace rests on beside its tensor arguments: state that changes, containers, contexts, the callable itself."""

import functools
import os
import types
import warnings

import pytest
import torch
import torch.nn as nn
from compiling import same

import fxjit
from fxjit import companion
from fxjit.capture import capture

G = {"s": 1.0}
L = [1.0]


class Box:
    def __init__(self, s):
        self.s = s

    def __call__(self, x):
        return x * self.s

    def method(self, x):
        return x * self.s


B = Box(1.0)


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def configured():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.cfg = {"k": 1.0}

        def forward(self, x):
            return x * self.cfg["k"]
    return M()


def changes():
    """(callable, what changes the factor it multiplies by from 1 to 5)"""
    cell, nested, args, box, m = [1.0], {"a": {"b": 1.0}}, [1.0], Box(1.0), configured()

    def default(x, s=[1.0]):  # noqa: B006
        return x * s[0]

    def partial(x, s):
        return x * s[0]
    return {
        "global dict": (lambda x: x * G["s"], lambda v: G.update(s=v)),
        "global list": (lambda x: x * L[0], lambda v: L.__setitem__(0, v)),
        "global object": (lambda x: x * B.s, lambda v: setattr(B, "s", v)),
        "closure list": (lambda x: x * cell[0], lambda v: cell.__setitem__(0, v)),
        "nested dict": (lambda x: x * nested["a"]["b"], lambda v: nested["a"].update(b=v)),
        "closure object": (lambda x: x * box.s, lambda v: setattr(box, "s", v)),
        "callable object": (box, lambda v: setattr(box, "s", v)),
        "method": (box.method, lambda v: setattr(box, "s", v)),
        "partial": (functools.partial(partial, s=args), lambda v: args.__setitem__(0, v)),
        "module config": (m, lambda v: m.cfg.update(k=v)),
        "default": (default, lambda v: default.__defaults__[0].__setitem__(0, v)),
    }


@pytest.mark.parametrize("what", list(changes()))
def test_state_that_changes_is_seen(what):
    f, change = changes()[what]
    change(1.0)
    c = fxjit.compile(f)
    x = torch.ones(3)
    try:
        for _ in range(3):
            assert c(x).eq(1).all()
        change(5.0)
        assert c(x).eq(5).all()
    finally:
        change(1.0)


def test_containers_among_the_arguments_are_changed_by_the_program_alone():
    def f(x, d, items):
        d["k"] = x
        items.append(x + 1)
        return x * 2
    c, x = fxjit.compile(f), torch.ones(2)
    for n in range(1, 4):
        d, items = {}, []
        c(x, d, items)
        assert list(d) == ["k"] and d["k"] is x and len(items) == 1


def test_a_failed_capture_leaves_no_proxy_behind():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = []

        def forward(self, x):
            y = x * 2
            self.seen.append(y)
            return y
    m = M()
    c = fxjit.compile(m)
    for _ in range(3):
        c(torch.ones(2))
    assert [type(t) for t in m.seen] == [torch.Tensor] * 3


def test_global_module_hooks_are_seen():
    m = nn.Sequential(nn.Linear(4, 4), nn.Softmax(-1))
    c, x = fxjit.compile(m), torch.randn(3, 4)
    for _ in range(3):
        c(x)
    hook = nn.modules.module.register_module_forward_hook(lambda m, i, o: o * 0 + 7)
    try:
        assert c(x).eq(7).all()
    finally:
        hook.remove()
    torch.testing.assert_close(c(x), m(x))


def test_a_module_that_the_root_does_not_have():
    act = {"gelu": nn.GELU()}

    def f(x):
        return act["gelu"](x) + nn.Softmax(-1)(x)

    c, x = fxjit.compile(f), torch.randn(3, 4)
    for _ in range(3):
        torch.testing.assert_close(c(x), f(x))
    assert c.explain().specialisations
    act["gelu"] = nn.ReLU()
    torch.testing.assert_close(c(x), f(x))


def test_torch_jit_trace_sees_the_operations():
    c, x = fxjit.compile(lambda x: (x * 2).relu()), torch.randn(3, 4)
    for _ in range(3):
        c(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(c, x)
    y = torch.randn(3, 4)
    torch.testing.assert_close(traced(y), (y * 2).relu())


def test_nested_tensors_run_as_in_eager():
    c, x = fxjit.compile(lambda x: x * 2 + 1), torch.ones(3)
    for _ in range(3):
        c(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        nested = torch.nested.nested_tensor([x, x])
    assert all(t.eq(3).all() for t in c(nested).unbind())


def test_a_nested_tensor_inside():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    c, x, mask = fxjit.compile(encoder), torch.randn(2, 5, 8), torch.zeros(2, 5, dtype=torch.bool)
    mask[0, 3:] = True
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(3):
            torch.testing.assert_close(c(x, src_key_padding_mask=mask), encoder(x, src_key_padding_mask=mask))


def test_eval_and_to_return_the_compiled_module():
    c = fxjit.compile(nn.Linear(2, 2))
    assert c.eval() is c and c.train() is c and c.to(torch.float64) is c


# ---- tensors that are no arguments, and random ones ----

T = torch.ones(3)


def test_what_is_computed_of_other_tensors_is_computed_at_each_call():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.ones(3))
            self.plain = torch.ones(3)

        def forward(self, x):
            return x * (self.b * 2) + (self.plain + 1) + T * 3
    m, x = M(), torch.ones(3)
    c = fxjit.compile(m)
    try:
        for _ in range(3):
            assert c(x).eq(7).all()
        m.b.fill_(2)
        assert c(x).eq(9).all()
        m.plain.fill_(2)
        assert c(x).eq(10).all()
        T.fill_(2)
        assert c(x).eq(13).all()
    finally:
        T.fill_(1)


def test_a_buffer_that_counts_counts_each_call_once():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count
    m = M()
    c = fxjit.compile(m)
    for n in range(1, 6):
        assert c(torch.zeros(2)).eq(n).all()
    assert m.count == 5


@pytest.mark.parametrize("f", [lambda x: x + torch.randn(3), lambda x: x + torch.rand(x.size(0)),
                               lambda x: x + torch.randint(0, 1000, (x.size(0),))])
def test_random_tensors_are_drawn_at_each_call(f):
    c, x = fxjit.compile(f), torch.zeros(3)
    torch.manual_seed(3)
    ours = [c(x) for _ in range(4)]
    torch.manual_seed(3)
    for y in ours:
        assert torch.equal(y, f(x))
    assert "checked FX trace" in str(c.explain())


def test_a_made_tensor_is_new_at_each_call():
    c = fxjit.compile(lambda x: (x + 1, torch.zeros(x.size(0), 2)))
    for _ in range(4):
        made = c(torch.ones(3))[1]
        assert made.eq(0).all()
        made.fill_(9)


class Scaled(torch.nn.Module):
    factor = 2.0

    def forward(self, x):
        return x * self.factor


def test_a_replaced_class_attribute_or_method_is_noticed(monkeypatch):
    compiled = fxjit.compile(Scaled())
    x = torch.ones(2)
    assert [compiled(x)[0].item() for _ in range(3)] == [2, 2, 2]
    monkeypatch.setattr(Scaled, "factor", 3.0)
    assert [compiled(x)[0].item() for _ in range(3)] == [3, 3, 3]
    monkeypatch.setattr(Scaled, "forward", lambda self, x: x - self.factor)
    assert [compiled(x)[0].item() for _ in range(3)] == [-2, -2, -2]


def test_a_functions_new_code_and_defaults_are_noticed():
    def program(x, k=2.0):
        return x * k

    compiled = fxjit.compile(program)
    x = torch.ones(2)
    assert [compiled(x)[0].item() for _ in range(3)] == [2, 2, 2]
    program.__defaults__ = (5.0,)
    assert [compiled(x)[0].item() for _ in range(3)] == [5, 5, 5]
    program.__code__ = (lambda x, k=2.0: x + k).__code__
    assert [compiled(x)[0].item() for _ in range(3)] == [6, 6, 6]


settings = types.ModuleType("settings_of_a_program")
settings.scale, settings.shift = 2.0, [1.0]


class Slotted:
    __slots__ = ("scale",)


slotted = Slotted()
slotted.scale = 2.0


@pytest.mark.parametrize("program, owner", [(lambda x: x * settings.scale, settings), (lambda x: x * slotted.scale, slotted),
                                            (lambda x: x * Scaled.factor, Scaled)])
def test_attributes_of_python_modules_classes_and_slotted_objects(program, owner, monkeypatch):
    compiled = fxjit.compile(program)
    x = torch.ones(2)
    assert [compiled(x)[0].item() for _ in range(3)] == [2, 2, 2]
    monkeypatch.setattr(owner, "factor" if owner is Scaled else "scale", 7.0)
    assert [compiled(x)[0].item() for _ in range(3)] == [7, 7, 7]
    assert not compiled.explain().fallbacks


def test_a_local_python_module_and_closures_of_callees():
    local, k = types.ModuleType("local_settings"), 3.0
    local.scale = 2.0

    def callee(x):
        return x * k

    compiled = fxjit.compile(lambda x: callee(x) * local.scale)
    x = torch.ones(2)
    assert [compiled(x)[0].item() for _ in range(3)] == [6, 6, 6]
    local.scale = 3.0
    assert [compiled(x)[0].item() for _ in range(3)] == [9, 9, 9]
    k = 1.0
    assert [compiled(x)[0].item() for _ in range(3)] == [3, 3, 3]


def test_the_state_of_a_module_whose_method_is_compiled():
    module = Scaled()
    module.factor = 2.0
    for compiled in (fxjit.compile(module.forward), fxjit.compile(lambda x: Scaled.forward(module, x))):
        module.factor = 2.0
        x = torch.ones(2)
        assert [compiled(x)[0].item() for _ in range(3)] == [2, 2, 2]
        module.factor = 4.0
        assert [compiled(x)[0].item() for _ in range(3)] == [4, 4, 4]


def test_the_environment_that_a_program_reads(monkeypatch):
    monkeypatch.setenv("FACTOR_OF_A_TEST", "2")
    compiled = fxjit.compile(lambda x: x * float(os.environ["FACTOR_OF_A_TEST"]) * float(os.getenv("NO_SUCH_NAME", "1")))
    x = torch.ones(2)
    assert [compiled(x)[0].item() for _ in range(3)] == [2, 2, 2]
    monkeypatch.setenv("FACTOR_OF_A_TEST", "3")
    assert [compiled(x)[0].item() for _ in range(3)] == [3, 3, 3]
    monkeypatch.setenv("NO_SUCH_NAME", "4")
    assert [compiled(x)[0].item() for _ in range(3)] == [12, 12, 12]


def test_what_could_not_be_captured_is_tried_again_after_a_change():
    class Checked(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x):
            if self.training and x.isnan().any():
                raise ValueError
            return self.linear(x).relu()

    model, x = Checked(), torch.randn(2, 4)
    compiled = fxjit.compile(model)
    for _ in range(5):
        same(compiled(x), model(x))
    assert compiled.explain().generic_calls == 5 and not compiled.explain().specialisations
    model.eval()
    for _ in range(3):
        same(compiled(x), model(x))
    assert len(compiled.explain().specialisations) == 1 and compiled.explain().generic_calls == 5
    assert any("'training'" in note for note in compiled.explain().notes)


def test_a_hook_that_is_removed_and_a_global_that_changes():
    model, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), torch.randn(2, 4)
    hook = model.register_forward_hook(lambda module, args, out: out + 1)
    compiled = fxjit.compile(model)
    for _ in range(3):
        same(compiled(x), model(x))
    hook.remove()
    for _ in range(3):
        same(compiled(x), model(x))
    assert compiled.explain().specialisations

    scope = {"eager": True}
    exec("def program(x): return x * (2 if eager and x.sum() > -1e9 else 3)", scope)
    compiled = fxjit.compile(scope["program"])
    assert compiled(x).equal(x * 2) and compiled(x).equal(x * 2)
    scope["eager"] = False
    for _ in range(3):
        assert compiled(x).equal(x * 3)
    assert compiled.explain().specialisations


def test_a_program_that_always_changes_its_state_is_seldom_traced(monkeypatch):
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    traces = []
    monkeypatch.setattr(companion, "capture", lambda *args: traces.append(1) or capture(*args))
    model, x = Counts(), torch.ones(2)
    compiled = fxjit.compile(model)
    for k in range(1, 101):
        assert compiled(x).equal(x * k)
    assert model.calls == 100 and 2 <= len(traces) <= 8
