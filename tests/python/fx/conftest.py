"""Every test that takes `fx` runs against torch.fx first: the oracle, and the proof that the test is right."""

import importlib
import pathlib
import sys
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture(params=["torch.fx", "fxjit.fx"])
def fx(request):
    return importlib.import_module(request.param)


@pytest.fixture
def ours():
    return importlib.import_module("fxjit.fx")


@pytest.fixture
def program():
    """program(fx, source): `source` run as a module of its own that has `fx` and `torch` as globals.

    wrap() patches the globals of the module that calls it, so programs that use it are made anew for each fx.
    """
    made = []

    def load(fx, source, name="program"):
        module = types.ModuleType(name)
        module.fx = fx
        module.torch = importlib.import_module("torch")
        sys.modules[name] = module
        made.append(name)
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)
        return module

    yield load
    for name in made:
        sys.modules.pop(name, None)
