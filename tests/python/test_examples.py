"""The programs of examples/, each in a process of its own: they compare with eager themselves. Each has its C++ twin,
which ctest runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = sorted(p.stem for p in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_example(name):
    env = {**os.environ, "FXJIT_VERIFY": "1"}
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip(), "an example shows what it does"


def test_each_example_has_a_twin_and_a_row():
    twins = {p.stem for p in EXAMPLES.glob("*.cpp")}
    table = (EXAMPLES / "README.md").read_text()
    assert twins == set(PROGRAMS) - {"demo"}  # the demo runs other programs
    assert [name for name in PROGRAMS if f"`{name}" not in table] == []
