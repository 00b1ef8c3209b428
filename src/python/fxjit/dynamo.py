"""The torch.compile backend, found through the entry-point group torch_dynamo_backends: no import is needed."""

from __future__ import annotations

import torch


def backend(graph_module: torch.fx.GraphModule, example_inputs, *, mode=None, options=None):
    """torch.compile(m, backend="fxjit", options={...}): options are those of fxjit.compile; modes are not ours."""
    from .compiler import compile as fxjit_compile
    if mode not in (None, "default"):
        raise ValueError(f"the backend 'fxjit' has no modes, but mode={mode!r} was given; "
                         "pass options={...} with the options of fxjit.compile instead")
    return fxjit_compile(graph_module, **(options or {}))
