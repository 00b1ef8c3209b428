"""Passes over fxjit.fx graphs, with the names that they have in torch.fx.passes."""

from . import shape_prop

__all__ = ["shape_prop"]
