"""Bisection of graphs: torch.fx's base class, and fxjit.minimize."""

import importlib

import fxjit
import pytest
import torch


def chain(x, y):
    a = torch.relu(x) + y
    b = a.sigmoid() * 2
    c = torch.tanh(b)
    return c.sum(-1) - y.mean()


def minimizer(fx, broken, **settings):
    """One whose run_b is off by one after each node whose name is in `broken`."""
    base = importlib.import_module(fx.__name__ + ".passes.net_min_base")

    class Off(fx.Interpreter):
        def run_node(self, n):
            value = super().run_node(n)
            return value + 1 if n.name in broken and n.op.startswith("call") else value

    class Minimizer(base._MinimizerBase):
        def run_a(self, mod, inputs, report_idx=-1):
            return fx.Interpreter(mod).run(*inputs)

        def run_b(self, mod, inputs, report_idx=-1):
            return Off(mod).run(*inputs)

    def compare(a, b, names):
        pairs = list(zip(a, b)) if isinstance(a, (tuple, list)) else [(a, b)]
        worst = max(float((x - y).abs().max()) for x, y in pairs)
        return worst, worst < 1e-4

    gm = fx.symbolic_trace(chain)
    args = (torch.randn(2, 3), torch.randn(3))
    return Minimizer(gm, args, compare, base._MinimizerSettingBase(**settings))


NODES = ["relu", "add", "sigmoid", "mul", "tanh", "sum_1", "mean", "sub"]


@pytest.mark.parametrize("method", ["sequential", "binary", "accumulate"])
@pytest.mark.parametrize("broken", [["add"], ["sub"], ["relu"], [], ["sigmoid", "tanh"]])
def test_traversals_find_what_torch_finds(method, broken, capsys):
    found = [{n.name for n in minimizer(fx, broken, traverse_method=method).minimize()} for fx in (torch.fx, fxjit.fx)]
    assert found[0] == found[1]
    assert found[1] == ({broken[0]} if broken else set())
    capsys.readouterr()


@pytest.mark.parametrize("method", ["sequential", "binary"])
def test_find_all(method, capsys):
    # torch.fx's binary search forgets what it found in the first half.
    found = minimizer(fxjit.fx, ["add", "tanh", "sub"], traverse_method=method, find_all=True).minimize()
    assert {n.name for n in found} == {"add", "tanh", "sub"}
    capsys.readouterr()


def test_ranges_skips_and_blocks(fx, capsys):
    def found(broken, method, **kwargs):
        return {n.name for n in minimizer(fx, broken, traverse_method=method).minimize(**kwargs)}

    assert found(["add"], "sequential", start="sigmoid") == set()
    assert found(["add"], "sequential", end="add") == {"add"}
    assert found(["tanh"], "skip", skip_nodes=["mul"]) == {"tanh", "sum_1", "mean", "sub"}
    assert found(["tanh"], "skip", skip_nodes=["tanh"]) == set()
    with pytest.raises(RuntimeError, match="skip_nodes"):
        found([], "skip")
    with pytest.raises(RuntimeError, match="Unknown traverse method"):
        found([], "sideways")
    capsys.readouterr()


def test_block_is_the_smallest_range(capsys):
    for name in NODES[:5]:
        block = minimizer(fxjit.fx, [name], traverse_method="block").minimize(end="tanh")
        assert {n.name for n in block} == {name}
    assert not minimizer(fxjit.fx, [], traverse_method="block").minimize(end="tanh")
    defined = minimizer(fxjit.fx, ["sigmoid"], traverse_method="defined")
    assert {n.name for n in defined.minimize(start="sigmoid", end="tanh")} == {"sigmoid", "mul", "tanh"}
    capsys.readouterr()


def test_run_nodes_and_reports(fx, capsys):
    m = minimizer(fx, ["mul"])
    m.run_nodes("sigmoid", "tanh")
    assert "Result mismatch" in capsys.readouterr().out
    m = minimizer(fx, [], return_intermediate=True)
    m.run_nodes("sigmoid", "tanh")
    assert "mismatch" not in capsys.readouterr().out
    assert {"sigmoid", "mul", "tanh"} <= set(m.a_outputs)
    m.print_reports()
    assert "Numerical accuracy = 0.0" in capsys.readouterr().out


def test_exclusion_and_exporter(capsys):
    m = minimizer(fxjit.fx, ["add", "tanh"], traverse_method="sequential", find_all=True)
    m.exclusion_fn = lambda nodes, start, end: [nodes.remove(n) for n in list(nodes) if n.name == "add"]
    exported = []
    m.module_exporter = lambda inputs, part, name: exported.append((name, len(inputs)))
    assert {n.name for n in m.minimize()} == {"tanh"}
    assert exported == [("tanh_cpu", 1), ("tanh_acc", 1)]
    capsys.readouterr()


def test_bad_parts_and_inputs():
    m = minimizer(fxjit.fx, [])
    base = fxjit.fx.passes.net_min_base
    nodes = {n for n in m.module.graph.nodes if n.name in ("relu", "sigmoid")}
    with pytest.raises(base.FxNetMinimizerBadModuleError, match="relu, sigmoid"):
        m._build_submodule(nodes)
    with pytest.raises(AssertionError, match="does not match"):
        type(m)(m.module, (), None, base._MinimizerSettingBase())


# ---- fxjit.minimize ----


def planted(name):
    """A backend that is wrong about one function."""
    def run(part, inputs):
        class Wrong(fxjit.fx.Interpreter):
            def run_node(self, n):
                value = super().run_node(n)
                return value * 1.01 if n.name == name and n.op.startswith("call") else value

        return Wrong(part).run(*inputs)

    return run


@pytest.mark.parametrize("method", ["binary", "sequential", "accumulate"])
@pytest.mark.parametrize("name", NODES)
def test_minimize_finds_the_planted_bug(method, name):
    found = fxjit.minimize(chain, (torch.randn(2, 3).abs(), torch.randn(3)), method=method, run=planted(name))
    assert [n.name for n in found.culprits] == [name]
    assert name in str(found) and "Result mismatch" in found.log
    a, b = fxjit.fx.Interpreter(found.part).run(*found.inputs), planted(name)(found.part, found.inputs)
    assert not torch.allclose(a, b)


def test_minimize_keeps_nodes_together_that_differ_only_together():
    def run(part, inputs):
        value = fxjit.fx.Interpreter(part).run(*inputs)
        wrong = {"sigmoid", "mul"} <= {n.name for n in part.graph.nodes if n.op.startswith("call")}
        return torch.utils._pytree.tree_map(lambda v: v + 1, value) if wrong else value

    found = fxjit.minimize(chain, (torch.randn(2, 3), torch.randn(3)), run=run)
    assert {"sigmoid", "mul"} <= {n.name for n in found.culprits}


def test_minimize_compares_with_compiled_code():
    found = fxjit.minimize(chain, (torch.randn(2, 3), torch.randn(3)))
    assert not found.culprits and str(found) == "no difference was found"


def test_minimize_with_tuples_sizes_and_writes():
    def f(x):
        a, b = x.chunk(2)
        n = x.size(1)
        y = (a * b).view(-1, n)
        y = y.add_(1)
        return y.relu() / n

    x = torch.rand(4, 3)
    before = x.clone()
    assert not fxjit.minimize(f, (x,), method="sequential").culprits
    found = fxjit.minimize(f, (x,), method="sequential", run=planted("relu"))
    assert [n.name for n in found.culprits] == ["relu"] and torch.equal(x, before)


def test_minimize_errors_of_a_backend():
    def run(part, inputs):
        if any(n.name == "tanh" and n.op == "call_function" for n in part.graph.nodes):
            raise ValueError("cannot do tanh")
        return fxjit.fx.Interpreter(part).run(*inputs)

    found = fxjit.minimize(chain, (torch.randn(2, 3), torch.randn(3)), run=run)
    assert [n.name for n in found.culprits] == ["tanh"] and "cannot do tanh" in found.log


@pytest.mark.parametrize("step", ["run_a", "run_b"])
def test_a_runner_that_is_not_defined_is_an_error_that_names_it(fx, step):
    base = importlib.import_module(fx.__name__ + ".passes.net_min_base")
    inputs = [torch.ones(2, 3), torch.ones(3)]
    none = base._MinimizerBase(fx.symbolic_trace(chain), inputs, lambda a, b, names: (0, True), base._MinimizerSettingBase())
    with pytest.raises(RuntimeError, match=rf"{step}\(\)"):  # of ours a NotImplementedError, which is one
        getattr(none, step)(none.module, inputs)
