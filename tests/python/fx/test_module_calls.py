"""What a trace reads of a tree of modules, and what a call of one leaves behind, on both."""

import collections

import pytest
import torch
from helpers import ops

nn = torch.nn


class Holder(nn.Module):
    """A child under each name, called one after the other."""

    def __init__(self, **children):
        super().__init__()
        for name, child in children.items():
            self.add_module(name, child)

    def forward(self, x):
        for name in self._modules:
            x = getattr(self, name)(x)
        return x


class OwnNames(Holder):
    """Tells of its submodules by names of its own."""

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        for name, module in super().named_modules(memo, prefix, remove_duplicate):
            yield name.replace("inner", "renamed"), module


class OwnAttributes(Holder):
    def __getattribute__(self, name):
        return super().__getattribute__(name)


class OwnTable(Holder):
    """Keeps its children in the order of their names."""

    @property
    def _modules(self):
        return dict(sorted(self.__dict__["_modules"].items()))

    @_modules.setter
    def _modules(self, table):
        self.__dict__["_modules"] = table


class NamedChildren(Holder):
    def named_children(self):
        return ((f"child_{name}", module) for name, module in super().named_children())


def shared():
    relu = nn.ReLU()
    return Holder(a=relu, b=Holder(inner=relu, other=nn.Tanh()), c=relu)


def ordered():
    root = Holder(b=nn.ReLU(), a=nn.Tanh())
    root._modules = collections.OrderedDict(root._modules)
    root._modules.move_to_end("b")
    return root


def with_a_gap():
    root = Holder(a=nn.Sequential(nn.ReLU()), b=nn.Identity())
    root.register_module("missing", None)
    return root


TREES = {
    "shared modules": shared,
    "names of its own": lambda: Holder(a=OwnNames(inner=nn.ReLU(), second=OwnNames(inner=nn.Tanh()))),
    "names of its own at the root": lambda: OwnNames(inner=nn.ReLU()),
    "__getattribute__": lambda: Holder(a=OwnAttributes(inner=nn.ReLU())),
    "a property for the table": lambda: Holder(a=OwnTable(y=nn.ReLU(), b=nn.Tanh())),
    "an ordered table": lambda: Holder(a=ordered()),
    "children of its own": lambda: Holder(a=NamedChildren(inner=nn.ReLU())),
    "Sequential": lambda: Holder(a=nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh()))),
    "nothing where a child could be": with_a_gap,
}


@pytest.mark.parametrize("tree", TREES)
def test_paths(fx, tree):
    root = TREES[tree]()

    class T(fx.Tracer):
        def create_args_for_root(self, *args, **kwargs):
            self.paths = dict(self.submodule_paths)
            return super().create_args_for_root(*args, **kwargs)

    tracer = T()
    try:
        tracer.trace(root)
    except (NameError, TypeError):
        pass  # of both: the paths are there all the same
    assert tracer.paths == {module: path for path, module in root.named_modules()}
    assert list(tracer.paths.values()) == [path for path, _ in root.named_modules()]


@pytest.mark.parametrize("tree", TREES)
def test_constants_of_modules(fx, tree):
    """Tensors that are plain attributes, at each module of the tree."""
    root = TREES[tree]()
    for module in root.modules():
        module.constant = torch.ones(2)
        module.__dict__["_other"] = (torch.ones(2),)
        module.empty = None
    tracer = fx.Tracer()
    try:
        tracer.trace(root)
    except (NameError, TypeError):
        pass

    def collect(module, path):
        yield from ((id(v), path + k) for k, v in module.__dict__.items() if isinstance(v, torch.Tensor))
        for name, child in module.named_children():
            yield from collect(child, f"{path}{name}.")

    assert {id(value): path for value, path in tracer.tensor_attrs.items()} == dict(collect(root, ""))


def test_constants_that_are_no_tensors(fx):
    root = Holder(a=nn.ReLU())
    _, root.spec = torch.utils._pytree.tree_flatten((1, [2]))
    root.a.training = torch.tensor(False)  # under a name that all modules have
    tracer = fx.Tracer()
    tracer.trace(root)
    assert list(tracer.tensor_attrs.values()) == ["spec", "a.training"]


def test_a_module_that_holds_itself(fx):
    root = Holder(a=nn.ReLU())
    root.b = root
    with pytest.raises(RecursionError):
        fx.Tracer().trace(root)
    assert ops(fx.Tracer().trace(Holder(a=nn.ReLU()))) == ["placeholder", "call_module", "output"]


def stacks(graph):
    return [list(n.meta.get("nn_module_stack", {}).items()) for n in graph.nodes]


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Holder(relu=nn.ReLU())

    def forward(self, x):
        y = self.inner(x) + 1
        return self.inner(y) * 2


@pytest.mark.parametrize("hook", ["call_module", "is_leaf_module", "path_of_module", "create_proxy", "create_node"])
def test_stack_scope_and_counts_as_each_step_sees_them(fx, hook):
    seen = []

    def spy(self, *args, **kwargs):
        state = list(self.module_stack.items()), self.scope.module_path, self.scope.module_type, dict(self.num_calls)
        seen.append(state)
        return getattr(super(T, self), hook)(*args, **kwargs)

    T = type("T", (fx.Tracer,), {hook: spy})
    tracer = T()
    graph = tracer.trace(Twice())
    inner, relu = ("inner", Holder), ("inner.relu", nn.ReLU)
    assert stacks(graph) == [
        [],
        [("inner", inner), ("inner.relu", relu)],
        [],
        [("inner@1", inner), ("inner.relu@1", relu)],
        [],
        [],
    ]
    assert all(path == (stack[-1][1][0] if stack else "") for stack, path, _, _ in seen)
    assert (tracer.module_stack, tracer.scope.module_path, tracer.num_calls) == ({}, "", {"inner": 2, "inner.relu": 2})
    deepest = {"call_module": 1, "path_of_module": 1}.get(hook, 2)
    assert max(len(stack) for stack, _, _, _ in seen) == deepest
    assert [counts for *_, counts in seen][-1] == {
        "call_module": {"inner": 2, "inner.relu": 1},
        "path_of_module": {"inner": 2, "inner.relu": 1},
    }.get(hook, {"inner": 2, "inner.relu": 2})


def test_entries_that_others_put_on_the_stack(fx):
    class T(fx.Tracer):
        def is_leaf_module(self, m, path):
            self.module_stack[f"below {path}"] = ("mine", int)
            return super().is_leaf_module(m, path)

        def create_node(self, *args, **kwargs):
            node = super().create_node(*args, **kwargs)
            if node.op == "call_module":
                self.keys = list(node.meta["nn_module_stack"])
            return node

    tracer = T()
    with pytest.raises(AssertionError, match="Unexpected key below a, expected a"):
        tracer.trace(Holder(a=nn.ReLU()))
    assert tracer.keys == ["a", "below a"]


@pytest.mark.parametrize("kind", [collections.OrderedDict, type("Mine", (collections.OrderedDict,), {})])
def test_a_stack_of_another_type(fx, kind):
    class T(fx.Tracer):
        def create_args_for_root(self, *args, **kwargs):
            self.module_stack = kind(self.module_stack)
            return super().create_args_for_root(*args, **kwargs)

    graph = T().trace(Twice())
    assert [len(stack) for stack in stacks(graph)] == [0, 2, 0, 2, 0, 0]
    assert {type(n.meta["nn_module_stack"]) for n in graph.nodes if "nn_module_stack" in n.meta} == {kind}


def test_a_module_that_raises(fx):
    class Failing(nn.Module):
        def forward(self, x):
            raise ValueError("on purpose")

    class Root(Holder):
        def forward(self, x):
            try:
                x = self.bad(x)
            except ValueError:
                pass
            return self.good(x)

    tracer = fx.Tracer()
    graph = tracer.trace(Root(bad=Failing(), good=nn.ReLU()))
    assert [n.target for n in graph.nodes] == ["x", "good", "output"]
    assert tracer.scope.module_path == ""
    assert list(tracer.module_stack) == ["bad"]  # nobody takes it away
    assert [[key for key, _ in stack] for stack in stacks(graph)] == [[], ["bad", "good"], ["bad"]]


def test_arguments_of_calls(fx):
    class Takes(nn.Module):
        def forward(self, x, *rest, scale=1, **options):
            return x * scale + sum(rest) - options["y"]

    class Root(Holder):
        def forward(self, x):
            return self.takes(x, 1, 2, scale=x, y=3) + self.leaf(input=x)

    class T(fx.Tracer):
        def call_module(self, m, forward, args, kwargs):
            self.calls.append((args, kwargs))
            return super().call_module(m, forward, args, collections.OrderedDict(kwargs))

    tracer = T()
    tracer.calls = []
    graph = tracer.trace(Root(takes=Takes(), leaf=nn.ReLU()))
    assert [(len(args), sorted(kwargs)) for args, kwargs in tracer.calls] == [(3, ["scale", "y"]), (0, ["input"])]
    call = next(iter(graph.find_nodes(op="call_module")))
    assert (call.args, list(call.kwargs)) == ((), ["input"])
    module = fx.GraphModule(tracer.root, graph)
    assert torch.equal(module(torch.ones(2)), torch.ones(2) * 2)


def test_patches_reach_classes_that_were_used_before(fx):
    """Classes remember where they find __call__ and __getattr__; a trace, and its end, must be seen by all of them."""

    class Sub(Holder):
        pass

    class Called(nn.ReLU):
        def __call__(self, x):
            return super().__call__(x)

    root = Sub(relu=nn.ReLU(), called=Called(), weight=Holder())
    x = torch.tensor([-1.0, 2.0])
    before = nn.Module.__call__, nn.Module.__getattr__, vars(nn.Module).copy()
    for _ in range(20):
        assert torch.equal(root(x), torch.tensor([0.0, 2.0]))
        graph = fx.Tracer().trace(root)
        assert ops(graph) == ["placeholder", "call_module", "call_function", "output"]
        assert (nn.Module.__call__, nn.Module.__getattr__, vars(nn.Module)) == before
    with pytest.raises(AttributeError, match="nothing"):
        root.nothing


def test_forward_of_an_instance(fx, program):
    """The globals of the function that runs are looked through, not those of the class's."""
    module = program(fx, "from math import sqrt\nroot_of = lambda x: sqrt(x)")
    root = Holder(a=Holder(), b=Holder())
    root.b.forward = module.root_of
    graph = fx.Tracer().trace(root)
    assert [n.op for n in graph.nodes] == ["placeholder", "call_function", "output"]
