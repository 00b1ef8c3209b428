"""Lists and dicts inside node arguments. They are torch.fx's classes, so that pytree and torch.fx know them."""

from torch.fx.immutable_collections import immutable_dict, immutable_list

__all__ = ["immutable_dict", "immutable_list"]
