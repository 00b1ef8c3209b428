#!/usr/bin/env python3
"""Compare fxjit with eager, torch.compile, JAX and hand-written AVX-512 kernels, and check the project's gates.

Every contender runs in one process, in shuffled turns, with the same malloc settings and threads, on results that were
checked against fp64 first. A ratio is the median over five processes. tools/bench builds what this needs and calls it."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from names import EVERYONE, EXTRA

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def environment(threads, cache, preset):
    """What every contender gets. Fresh pages cost more than most kernels here: memory once used stays with the process.
    Huge pages are asked for by malloc, so that no contender has them for itself."""
    env = dict(os.environ)
    env |= {
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TOP_PAD_": str(256 << 20),
        "MALLOC_ARENA_MAX": "1",  # JAX allocates from its worker threads
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "OMP_PROC_BIND": "true",
        "OMP_NUM_THREADS": str(threads),
        "NPROC": str(threads),  # the size of JAX's pool
        "JAX_PLATFORMS": "cpu",
        "FXJIT_CACHE": "off",  # compile times are measured
        # Inductor: a cache for all processes of this run, one for each number of threads since generated code holds the
        # number; no pool of compiler processes; no probing of vector instructions with the compiler (12 s a process).
        "TORCHINDUCTOR_CACHE_DIR": str(Path(cache) / f"inductor-{threads}"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
        # Keep the explicit casts of the fp16 programs: without this torch.compile computes another function.
        "TORCHINDUCTOR_EMULATE_PRECISION_CASTS": "1",
    }
    package = ROOT / "build" / preset / "python"
    if package.is_dir():
        env["PYTHONPATH"] = os.pathsep.join([str(package), *filter(None, [env.get("PYTHONPATH")])])
    return env


def find_built(preset, name):
    return next(iter(sorted((ROOT / "build" / preset).glob(f"**/{name}"))), None)


def run_child(options, threads, index, wanted, folder):
    out = Path(folder) / f"{threads}-{index}.json"
    command = [sys.executable, str(HERE / "child.py"), "--out", str(out), "--threads", str(threads)]
    command += ["--budget", str(0.4 if options.quick else 1.2), "--seed", str(1000 * threads + index)]
    for name in wanted:
        command += ["--case", name]
    for name in options.without:
        command += ["--without", name]
    library = options.hand_lib or find_built(options.preset, "libfxjit_hand.so")
    if library:
        command += ["--hand-lib", str(library)]
    start = time.monotonic()
    status = subprocess.run(command, env=environment(threads, folder, options.preset), check=False).returncode
    if status != 0 or not out.exists():
        print(f"process {index} with {threads} threads ended with status {status}; its results are left out", file=sys.stderr)
        return None
    print(f"  {time.monotonic() - start:.0f} s", file=sys.stderr)
    return json.loads(out.read_text())


def run_cpp(options, folder):
    """Google Benchmark's results by name in µs, of each repetition; or the reason why there are none."""
    binary = options.binary or find_built(options.preset, "fxjit_bench")
    if binary is None:
        return "fxjit_bench is not built"
    out = Path(folder) / "cpp.json"
    # 1.7 takes the time without a unit. Only what the gates ask for: the whole binary takes minutes.
    command = [str(binary), "--benchmark_filter=^call/", "--benchmark_min_time=0.2", "--benchmark_repetitions=15"]
    command += [f"--benchmark_out={out}", "--benchmark_out_format=json"]
    env = environment(1, folder, options.preset)
    status = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=False).returncode
    if status != 0 or not out.exists():
        return f"fxjit_bench ended with status {status}"
    units = {"ns": 1e-3, "us": 1.0, "ms": 1e3}
    rows = json.loads(out.read_text() or '{"benchmarks": []}')["benchmarks"]  # empty where nothing matches
    times = {}
    for r in rows:
        if r["run_type"] == "iteration":
            times.setdefault(r["run_name"], []).append(r["real_time"] * units[r["time_unit"]])
    return times


def require_build(options):
    """Ends the run before its first minute where what is to be measured is not there."""
    if "fxjit" not in options.without:
        command = [sys.executable, "-c", "import fxjit"]
        done = subprocess.run(command, env=environment(1, "/tmp", options.preset), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            sys.exit(f"compare: fxjit of build/{options.preset} cannot be imported: {last}\n"
                     f"build it (cmake --workflow --preset {options.preset}), or name another with --preset")
    if options.write and "hand" not in options.without and not (
            options.hand_lib or find_built(options.preset, "libfxjit_hand.so")):
        sys.exit(f"compare: --write compares with the hand-written kernels, and build/{options.preset} has no libfxjit_hand.so")


def chosen(options):
    """The cases that --case names: an id, or a prefix of ids; all without it."""
    from cases import CASES  # brings torch, which --help can do without

    known = [case.id for case in CASES] + EXTRA
    if not options.case:
        return known
    found = [name for name in known if any(name.startswith(wanted) for wanted in options.case)]
    for wanted in options.case:
        if not any(name.startswith(wanted) for name in known):
            sys.exit(f"compare: no case is called {wanted!r}; there are {', '.join(known)}")
    return found


def parse(argv):
    parser = argparse.ArgumentParser(prog="tools/bench", description=__doc__.split("\n\n")[1])
    parser.add_argument("--case", action="append", default=[], help="only this case, or all that begin so; may be repeated")
    parser.add_argument("--threads", default="1,2", help="thread counts, by default 1,2")
    parser.add_argument("--quick", action="store_true", help="one process and few rounds: three minutes, for a first look")
    parser.add_argument("--processes", type=int, help="processes for each number of threads, by default 5 (1 with --quick)")
    parser.add_argument("--without", action="append", default=[], choices=EVERYONE, help="leave a contender out")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/benchmarks.md")
    parser.add_argument("--json", type=Path, help="also keep the raw measurements in this file")
    parser.add_argument("--preset", default="bench", help="the build that is measured: build/PRESET")
    parser.add_argument("--hand-lib", type=Path, help="libfxjit_hand.so, by default the one in build/PRESET")
    parser.add_argument("--binary", type=Path, help="fxjit_bench, by default the one in build/PRESET")
    options = parser.parse_args(argv)
    options.threads = [int(t) for t in options.threads.split(",")]
    options.processes = options.processes or (1 if options.quick else 5)
    if options.write and (options.quick or options.case or options.without):
        parser.error("--write wants the whole run: no --quick, --case or --without")
    return options


def main(argv=None):
    options = parse(argv)
    names = chosen(options)
    require_build(options)
    import report

    runs, start = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fxjit-bench-") as folder:
        for index in range(options.processes):
            for threads in options.threads:
                wanted = names if threads == options.threads[0] else [n for n in names if n not in EXTRA]
                if not wanted:
                    continue
                print(f"process {index + 1} of {options.processes}, threads: {threads}", file=sys.stderr, flush=True)
                child = run_child(options, threads, index, wanted, folder)
                runs += [child] if child else []
        cpp = run_cpp(options, folder) if "call" in names else "not asked for"
    if not runs:
        sys.exit("compare: no process ended well")
    if options.json:
        options.json.write_text(json.dumps({"runs": runs, "cpp": cpp}))
    text = report.render(runs, cpp, minutes=(time.monotonic() - start) / 60)
    print(text)
    if options.write:
        target = ROOT / "docs" / "benchmarks.md"
        target.parent.mkdir(exist_ok=True)
        target.write_text(text)
        print(f"written to {target.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
