"""A program compiled and eager, compared call by call."""

import torch

import fxjit


def same(ours, eager):
    assert type(ours) is type(eager)
    if isinstance(eager, (tuple, list)):
        assert len(ours) == len(eager)
        for a, b in zip(ours, eager):
            same(a, b)
    elif isinstance(eager, torch.Tensor):
        assert (ours.dtype, ours.shape, ours.stride()) == (eager.dtype, eager.shape, eager.stride())
        torch.testing.assert_close(ours, eager, equal_nan=True)
    else:
        assert ours == eager


def check(f, *args, calls=3, specialisations=1, **options):
    """Calls the compiled f often enough to run recorded and compiled code, and compares each call with eager."""
    compiled = fxjit.compile(f, **options)
    for _ in range(calls):
        same(compiled(*args), f(*args))
    explained = compiled.explain()
    assert len(explained.specialisations) == specialisations, str(explained)
    return compiled


def kernels(compiled):
    return [k.name for k in compiled.explain().kernels]


def aten_calls(compiled):
    return [c["target"] for s in compiled.explain().specialisations for c in s["aten_calls"]]
