"""PassBase and PassManager, on both."""

import importlib

import pytest
import torch


@pytest.fixture
def manager(fx):
    return importlib.import_module(fx.__name__ + ".passes.infra.pass_manager")


@pytest.fixture
def base(fx):
    return importlib.import_module(fx.__name__ + ".passes.infra.pass_base")


def program(x):
    return torch.add(x, 1)


def replacing(old, new, base):
    """A pass that calls `new` where `old` was called."""

    def run(gm):
        changed = False
        for node in gm.graph.nodes:
            if node.target is old:
                node.target, changed = new, True
        return base.PassResult(gm, changed)

    run.__name__ = f"{old.__name__}_to_{new.__name__}"
    return run


def test_passes_run_and_recompile(fx, manager, base):
    passes = [replacing(torch.add, torch.mul, base), replacing(torch.mul, torch.sub, base)]
    gm = fx.symbolic_trace(program)
    result = manager.PassManager(passes)(gm)
    assert result.modified and result.graph_module is gm and result == (gm, True)
    assert gm(torch.ones(1)).item() == 0
    assert not manager.PassManager(passes)(gm).modified


def test_steps_until_nothing_changes(fx, manager, base):
    calls = []

    def counted(gm):
        calls.append(1)
        return base.PassResult(gm, len(calls) < 3)

    manager.PassManager([counted], steps=10)(fx.symbolic_trace(program))
    assert len(calls) == 3


def test_constraints(fx, manager, base):
    a, b, c = (replacing(old, new, base) for old, new in ((torch.add, torch.mul), (torch.mul, torch.sub), (torch.sub, torch.add)))
    before = manager.this_before_that_pass_constraint
    assert before(a, b)(a, b) and not before(a, b)(b, a)
    pm = manager.PassManager([c, b, a], [before(a, b)])
    pm.add_constraint(before(b, c))
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        pm.validate_constraints()
    pm.solve_constraints()
    assert pm.passes == [a, b, c]
    pm.validate_constraints()
    pm.add_pass(a)
    circular = manager.PassManager([a, b], [before(a, b), before(b, a)])
    with pytest.raises(RuntimeError, match="Circular dependency detected within the following passes"):
        circular(fx.symbolic_trace(program))


def test_pass_objects(fx, manager, base):
    log = []

    class Logging(base.PassBase):
        def requires(self, gm):
            log.append("requires")

        def call(self, gm):
            log.append("call")
            return base.PassResult(gm, False)

        def ensures(self, gm):
            log.append("ensures")

    manager.PassManager([Logging()])(fx.symbolic_trace(program))
    assert log == ["requires", "call", "ensures"]
    with pytest.raises(TypeError):
        base.PassBase()


def test_wrapper(fx, manager, base):
    gm = fx.symbolic_trace(program)
    wrap = manager.pass_result_wrapper
    assert wrap(None) is None
    assert wrap(lambda m: None)(gm) == (gm, True) and wrap(lambda m: m)(gm) == (gm, True)
    kept = base.PassResult(gm, False)
    assert wrap(lambda m: kept)(gm) is kept


def test_errors_name_the_pass(fx, manager, base):
    def fine(gm):
        return base.PassResult(gm, True)

    def broken(gm):
        raise ValueError("why")

    def forgetful(gm):
        return gm

    gm = fx.symbolic_trace(program)
    with pytest.raises(Exception, match="running the 'broken' pass after the following passes: ..fine"):
        manager.PassManager([fine, broken])(gm)
    with pytest.raises(Exception, match="'forgetful'") as raised:
        manager.PassManager([forgetful])(gm)
    assert isinstance(raised.value.__cause__, TypeError) and "pass_result_wrapper" in str(raised.value.__cause__)


def test_checks(fx, manager, base):
    seen = []
    pm = manager.PassManager([lambda gm: base.PassResult(gm, True)] * 2, run_checks_after_each_pass=True)
    pm.add_checks(lambda gm: seen.append(gm))
    gm = fx.symbolic_trace(program)
    pm(gm)
    assert seen == [gm] * 3
    with pytest.raises(TypeError, match="one variable"):
        pm.add_checks(lambda gm, more: None)
