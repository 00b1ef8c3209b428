"""Trace the corpus with torch.fx and fxjit.fx, and compare node by node: opcode, name, target, args, kwargs, type, users
and module stack; errors by class. Exit status 1 if anything differs.

Programs: torch.nn.functional with the bodies traced, torch's operator and module databases over their own sample inputs,
every torchvision model, two models of each timm module, and every architecture of transformers that builds from its
default configuration. Weights are neither downloaded nor made (meta device)."""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch  # noqa: E402
from compare import DIFFERS, FURTHER, SAME, SAME_ERROR, SKIPPED, Skip, compare  # noqa: E402
from families import FAMILIES, context_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BAR = 24


class Progress:
    """A bar on a terminal, a line now and then elsewhere."""

    def __init__(self, family, total):
        self.family, self.total, self.last = family, total, time.monotonic()
        self.terminal = sys.stderr.isatty()

    def show(self, done, name):
        if self.terminal:
            filled = BAR * done // max(self.total, 1)
            bar = "#" * filled + "." * (BAR - filled)
            print(f"\r\033[K{self.family:12} [{bar}] {done}/{self.total} {name[:40]}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self.last > 15:
            self.last = time.monotonic()
            print(f"{self.family}: {done}/{self.total}", file=sys.stderr, flush=True)

    def end(self):
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def run_family(family, args):
    try:
        cases = [case for case in FAMILIES[family](args.all) if args.match in case.name]
    except Skip as reason:
        print(f"{family}: left out: {reason}", flush=True)
        return None
    progress, outcomes = Progress(family, len(cases)), []
    with context_of(family):
        for i, case in enumerate(cases):
            progress.show(i, case.name)
            outcomes.append(compare(case, args.seconds))
    progress.end()
    for o in outcomes:
        if o.verdict == DIFFERS or args.verbose:
            print(f"{family} {o.name}: {o.verdict}{f' ({o.nodes} nodes)' if o.nodes else ''} {o.detail}", flush=True)
    return outcomes


def table(results):
    verdicts = (SAME, SAME_ERROR, FURTHER, DIFFERS, SKIPPED)
    lines = ["| family | programs | same graph | nodes | same error | gets further | differs | not built |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for family, outcomes in results.items():
        same, *others = (sum(o.verdict == verdict for o in outcomes) for verdict in verdicts)
        nodes = sum(o.nodes for o in outcomes if o.verdict == SAME)
        lines.append(f"| {family} | {len(outcomes)} | {same} | {nodes:,} | {' | '.join(map(str, others))} |")
    return "\n".join(lines)


def versions():
    found = [f"torch {torch.__version__.split('+')[0]}"]
    for name in ("torchvision", "timm", "transformers"):
        if name in sys.modules:
            found.append(f"{name} {sys.modules[name].__version__.split('+')[0]}")
    return ", ".join(found)


DOCUMENT = """# The corpus

Programs that torch.fx and fxjit.fx trace alike, node by node: opcode, name, target, args, kwargs, type, users and module
stack; and errors by class. Made by `tools/corpus --write` with {versions}.

{table}

*gets further*: torch.fx stops where a C function refuses a Proxy with a TypeError; fxjit.fx records that call (factories on
symbolic sizes, methods called through `torch.Tensor`). *not built*: an operator with fewer than {samples} samples, or a model that asks for a package, a file or data that is not
there.
"""


def main():
    parser = argparse.ArgumentParser(prog="tools/corpus", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="family", help=f"of {', '.join(FAMILIES)} (default: all)")
    parser.add_argument("--match", default="", help="only programs whose name contains this")
    parser.add_argument("--all", action="store_true", help="every timm model instead of two of each module")
    parser.add_argument("--seconds", type=int, default=120, help="limit for making or tracing one program")
    parser.add_argument("--write", action="store_true", help="write docs/corpus.md")
    parser.add_argument("--verbose", action="store_true", help="a line for each program")
    args = parser.parse_args()
    for family in args.families:
        if family not in FAMILIES:
            parser.error(f"no family {family}; there are {', '.join(FAMILIES)}")
    results = {}
    for family in args.families or FAMILIES:
        outcomes = run_family(family, args)
        if outcomes is not None:
            results[family] = outcomes
    print(f"\n{versions()}\n\n{table(results)}")
    if args.write:
        from families import SAMPLES

        document = DOCUMENT.format(versions=versions(), table=table(results), samples=SAMPLES)
        (ROOT / "docs" / "corpus.md").write_text(document)
    return 1 if any(o.verdict == DIFFERS for outcomes in results.values() for o in outcomes) else 0


if __name__ == "__main__":
    sys.stdout.flush()
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # some models leave threads and children behind
