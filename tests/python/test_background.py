"""The option `background`: no call waits for a compilation."""

import os
import subprocess
import sys
import threading

import pytest
import torch

import fxjit


def gate(x, y):
    return (torch.softmax(x, -1) * y - 0.1).relu()


def data(n=16):
    return torch.linspace(-3, 3, 4 * n).view(4, n), torch.linspace(0, 1, n)


def same(got, want):
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)


def test_explain_waits_and_later_calls_run_what_was_compiled():
    f = fxjit.compile(gate, background=True)
    same(f(*data()), gate(*data()))
    assert len(f.explain().specialisations) == 1
    same(f(*data()), gate(*data()))
    same(f(*data(20)), gate(*data(20)))
    (made,) = f.explain().specialisations
    assert made["hits"] == 2 and f.explain().kernels
    assert "specialisation" in f.code


def test_every_call_is_right_whether_or_not_the_code_is_ready():
    f = fxjit.compile(gate, background=True)
    wrong = []

    def work(n):
        for _ in range(30):
            if not torch.allclose(f(*data(n)), gate(*data(n)), atol=1e-6):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (16, 16, 17, 33)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and f.explain().specialisations


def test_structures_and_constants_of_the_result_come_back():
    f = fxjit.compile(lambda x: {"double": x * 2, "name": "x", "pair": (x + 1, None)}, background=True)
    for _ in range(3):
        got = f(torch.ones(5))
        same(got["double"], torch.full((5,), 2.0))
        assert got["name"] == "x" and got["pair"][1] is None
        f.explain()


def test_a_module():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())
    f = fxjit.compile(model, background=True)
    x = torch.randn(3, 8)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(f(x), model(x))
            assert len(f.explain().specialisations) == 1


def test_strict_raises_at_the_call_after_the_failure():
    f = fxjit.compile(lambda x: torch.sort(x)[0], background=True, strict=True)
    x = torch.tensor([3.0, 1.0])
    same(f(x), torch.tensor([1.0, 3.0]))
    f.explain()
    with pytest.raises(RuntimeError, match="strict.*sort"):
        f(x)


PROGRAM = """
import torch, fxjit
torch.set_num_threads(1)
for i in range(5):
    f = fxjit.compile(lambda x: {"y": (x * i).sigmoid() + i, "i": i}, background=True)
    f(torch.ones(4))
"""


def test_a_process_may_end_while_something_is_being_compiled():
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_child_of_a_fork_compiles_for_itself():
    torch.set_num_threads(1)  # eager itself hangs in a child otherwise
    f = fxjit.compile(gate, background=True)
    f(*data())
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            f(*data()), f.explain(), f(*data())
            status = 7 if f.explain().specialisations and torch.allclose(f(*data()), gate(*data())) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert f.explain().specialisations
