"""The option `cache`: kernels of one process are those of the next."""

import json
import os
import subprocess
import sys

PROGRAM = """
import json, sys, torch, fxjit

def gate(x, y):
    return (torch.softmax(x, -1) * y - 0.1).relu()

f = fxjit.compile(gate, cache=sys.argv[1])
x, y = torch.linspace(-3, 3, 64).view(4, 16), torch.linspace(0, 1, 16)
f(x, y)
close = all(torch.allclose(f(x, y), gate(x, y)) for _ in range(2))
kernels = f.explain().kernels
print(json.dumps({"close": close, "from disk": [k.from_disk for k in kernels], "text": str(f.explain())}))
"""


def run(folder):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(folder)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_the_next_process_compiles_nothing(tmp_path):
    folder = tmp_path / "kernels"
    first, _ = run(folder)
    kept = sorted(folder.iterdir())
    assert first["close"] and first["from disk"] == [False] and len(kept) == 1
    second, _ = run(folder)
    assert second["close"] and second["from disk"] == [True] and "ms, from disk" in second["text"]
    assert sorted(folder.iterdir()) == kept


def test_a_damaged_file_is_compiled_anew(tmp_path):
    run(tmp_path)
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2] + b"\0" + whole[len(whole) // 2 + 1 :])
    again, _ = run(tmp_path)
    assert again["close"] and again["from disk"] == [False]
    assert kept.read_bytes() == whole


def test_a_folder_that_others_may_write_is_warned_of_and_not_used(tmp_path):
    os.chmod(tmp_path, 0o777)
    done, errors = run(tmp_path)
    assert done["close"] and done["from disk"] == [False] and not list(tmp_path.iterdir())
    assert errors.count("other users may write there") == 1
