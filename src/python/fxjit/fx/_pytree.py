"""How pytrees of torch.fx are flattened by a known structure. The registry is torch.fx's: both honour it."""

from torch.fx._pytree import register_pytree_flatten_spec, tree_flatten_spec

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]
