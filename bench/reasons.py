"""Why a gate falls short, as far as it is known. The key is the gate's name or its first words, as in "add_lowp 2^24, 1 thread:
copy", "softmax", "compile, first kernel"."""

REASONS: dict[str, str] = {
    "chain12 2^24":
        "the spread over the processes is wider than the gap (0.78 to 0.99)",
    "where_clamp 2^24":
        "the spread over the processes is wider than the gap (0.993 in a second run)",
    "rms_norm":
        "on Zen 4 the spread over the processes is wider than the gap (0.64 to 1.72 in two runs); 1.01 where the rows fit in L2",
    "softmax":
        "0.9 to 0.94 on Zen 4, above 1 on Sapphire Rapids: what its first pass waits for there is not found yet",
    "trace 20,000 additions, create_node":
        "the spread over the processes is wider than the gap (15.7 in the run of docs/benchmarks-fx.md, just after)",
}


def reason(gate):
    return next((why for name, why in REASONS.items() if gate.startswith(name)), "not yet looked into")
