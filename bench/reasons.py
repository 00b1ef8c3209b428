"""Why a gate falls short, as far as it is known. The key is the gate's name or its first words, as in "add_lowp 2^24, 1 thread:
copy", "softmax", "compile, first kernel"."""

_SPREAD = "the spread over the processes is wider than the gap: other work ran beside this run"

REASONS: dict[str, str] = {
    "add_lowp 2^24": _SPREAD,
    "chain12 2^24": _SPREAD,
    "where_clamp 2^24": _SPREAD,
    "compile, each further kernel": _SPREAD + " (4.3 ms in the run before)",
}


def reason(gate):
    return next((why for name, why in REASONS.items() if gate.startswith(name)), "not yet looked into")
