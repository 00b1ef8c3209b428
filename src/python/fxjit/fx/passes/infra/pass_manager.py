"""Runs passes in an order that keeps given constraints."""

import collections
import functools
import inspect

import torch

from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def _name_of(fn):
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__


def pass_result_wrapper(fn):
    """A pass that returns None or a module as one that returns a PassResult, which then says that it was modified."""
    if fn is None:
        return None

    @functools.wraps(fn)
    def wrapped(gm):
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, torch.nn.Module):
            return PassResult(result, True)
        return result if isinstance(result, PassResult) else None

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def this_before_that_pass_constraint(this, that):
    """A constraint: a function of two passes in order that is false if they are `that` and `this`."""

    def depends_on(a, b):
        return a != that or b != this

    return depends_on


def _validate_pass_schedule_constraint(constraint, passes):
    for i, a in enumerate(passes):
        for j, b in enumerate(passes[i + 1 :]):
            if not constraint(a, b):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {a} before {b} but found {a} at index {i} and {b} "
                    f"at index{j} in pass list."
                )


def _topological_sort_passes(passes, constraints):
    """The passes in an order that keeps all constraints; otherwise first in, first out."""
    if not constraints:
        return passes
    later = {p: [] for p in passes}
    missing = dict.fromkeys(passes, 0)
    for a in passes:
        for b in passes:
            for constraint in constraints:
                if a != b and not constraint(a, b):
                    later[b].append(a)
                    missing[a] += 1
    ready = collections.deque(p for p in passes if missing[p] == 0)
    done = []
    while ready:
        done.append(ready.popleft())
        for p in later[done[-1]]:
            missing[p] -= 1
            if missing[p] == 0:
                ready.append(p)
    stuck = [p for p, count in missing.items() if count]
    if stuck:
        raise RuntimeError(f"Circular dependency detected within the following passes: {stuck}")
    return done


class PassManager:
    """Runs passes, functions from a module to a PassResult, over a module.

    constraints: functions of two passes that are true if the first may run before the second
    steps: how often the passes are run at most; no more often than they change anything
    run_checks_after_each_pass: call the check that add_checks() has set behind each pass as well
    suppress_check_failures: has no effect
    """

    _validated = False
    steps = 1

    def __init__(
        self,
        passes=None,
        constraints=None,
        steps=None,
        run_checks_after_each_pass=False,
        suppress_check_failures=False,
    ):
        self.passes = passes or []
        self.constraints = constraints or []
        if steps:
            self.steps = steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def add_pass(self, _pass):
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint):
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self):
        """RuntimeError if the passes as they are listed break a constraint."""
        if self._validated:
            return
        for constraint in self.constraints:
            _validate_pass_schedule_constraint(constraint, self.passes)
        self._validated = True

    def solve_constraints(self):
        """Brings the passes into an order that keeps the constraints; RuntimeError if there is none."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check):
        """`check` is called with the module before the passes run, and raises if something is wrong with it."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module):
        pass

    def __call__(self, module):
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        ever_modified = False
        for _ in range(self.steps):
            modified = False
            for i, fn in enumerate(self.passes):
                try:
                    module, changed = self._run(fn, module)
                except Exception as e:
                    before = [_name_of(p) for p in self.passes[:i]]
                    text = f"An error occurred when running the '{_name_of(fn)}' pass after the following passes: {before}"
                    raise Exception(text) from e
                modified = modified or changed
            ever_modified = ever_modified or modified
            if not modified:
                break
        return PassResult(module, ever_modified)

    def _run(self, fn, module):
        result = fn(module)
        if not hasattr(result, "graph_module"):
            raise TypeError(
                f"The result of the pass {_name_of(fn)} should be type PassResult. Please wrap it with "
                "pass_result_wrapper()"
            )
        module = result.graph_module
        if isinstance(module, GraphModule):
            module.recompile()
        if self.run_checks_after_each_pass:
            self.check(module)
        return module, result.modified
