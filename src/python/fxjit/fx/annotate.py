"""Types of values, said by the traced program."""

from .proxy import Proxy

__all__ = ["annotate"]


def annotate(val, type):
    """Gives a proxy's node this type; returns `val`, whatever it is.

    Errors: RuntimeError where the node has a type already.
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new type "
                f"is {type}. A parameter's type is said in the signature of the function; any other value is annotated once"
            )
        val.node.type = type
    return val
