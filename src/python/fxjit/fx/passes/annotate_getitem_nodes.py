"""Types of the items of annotated tuples, lists and named tuples."""

import operator

import torch

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph):
    """Sets node.type of each getitem node whose sequence has a type that tells the item's: Tuple[...], List[...], their
    lower-case forms, and NamedTuple classes. Other nodes stay as they are."""
    for node in graph.nodes:
        if node.target is operator.getitem:
            sequence, index = node.args
            if sequence.type:
                item = _item_type(sequence.type, index)
                if item is not None:
                    node.type = item


def _item_type(sequence, index):
    origin = getattr(sequence, "__origin__", None)
    if origin in (tuple, list):
        items = sequence.__args__
        if origin is list or (len(items) == 2 and items[1] is Ellipsis):
            return items[0]
        if not index < len(items):
            raise AssertionError(f"Index {index} out of range for parameterized_types (len={len(items)})")
        return items[index]
    if sequence is not torch.Tensor and hasattr(sequence, "_fields"):
        return sequence.__annotations__[sequence._fields[index]]
    return None
