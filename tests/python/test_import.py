"""What importing checks and finds."""

import importlib.metadata
import sys

import pytest
import torch

import fxjit
from fxjit import _C, _platform


def test_another_torch_is_an_error_that_says_which_one_fits():
    _platform.check_torch(torch.__version__)
    with pytest.raises(ImportError, match=r"built for torch 2\.7, found .*pip install 'torch==2\.7\.\*'"):
        _platform.check_torch("2.7.1")


@pytest.mark.parametrize("what, value, text", [
    ("sys.platform", "darwin", "Linux x86-64, not on darwin"),
    ("platform.machine", lambda: "aarch64", "Linux x86-64, not on linux aarch64"),
    ("sys._is_gil_enabled", lambda: False, "PYTHON_GIL=1"),
])
def test_a_machine_or_interpreter_that_does_not_do_is_an_error(monkeypatch, what, value, text):
    monkeypatch.setattr(what, value, raising=False)
    with pytest.raises(ImportError, match=text):
        _platform.check_interpreter()


def test_onednn_of_the_wheel_is_found_and_used():
    try:
        importlib.metadata.version("onednn-cpu-gomp")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the wheel onednn-cpu-gomp is not installed here")
    assert _platform.find_onednn().startswith(sys.prefix)
    f = fxjit.compile(torch.nn.Linear(8, 4))
    with torch.no_grad():
        f(torch.ones(2, 8))
    assert [c["target"] for c in f.explain().specialisations[0]["library_calls"]] == ["oneDNN linear"]


def test_the_build_tells_its_torch():
    assert _C.built_with_torch.startswith("2.")
