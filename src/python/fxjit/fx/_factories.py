"""torch functions whose argument parser does not take a Proxy for a number where it comes first: `torch.zeros(n, 3)`.

During a trace they are replaced by functions that record the call; others torch hands to the Proxy by itself.
"""

import functools
import re

import torch

from .._C import find_proxy
from ._frames import is_library_file

FACTORIES = {
    getattr(torch, name): name for name in "zeros ones empty rand randn tensor as_tensor scalar_tensor".split()
}


RANDOM_FACTORIES = frozenset(getattr(torch, name) for name in "rand randn randint randperm normal".split())


@functools.cache
def _recording(factory):
    @functools.wraps(factory)
    def factory_call(*args, **kwargs):
        proxy = find_proxy((args, kwargs))
        if proxy is None:
            return factory(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", factory, args, kwargs)

    return factory_call


def patch_factories(patcher, scope):
    """Replaces those factories that `scope`, a module's globals, has under their name."""
    for factory, name in FACTORIES.items():
        if scope.get(name) is factory:
            patcher.replace_item(scope, name, _recording(factory))


# What a TypeError of Python or torch about a Proxy says → what would work.
_ADVICE = (
    ("slice indices must be integers", "", "an index of a tensor that is no traced value cannot be traced without example "
     "inputs: give the tracer example_inputs, or register the tensor as a buffer and set proxy_buffer_attributes"),
    ("torch.Size() takes an iterable of 'int'", "", "a tuple does as well as a torch.Size"),
    ("object cannot be interpreted as an integer", "", "give the tracer example_inputs: sizes are known then"),
    ("argument must be a", "not '", "wrap('int') at the top level of the module records the call; with example_inputs the "
     "tracer knows sizes"),
    ("indices must be integers or slices, not", "", "give the tracer example_inputs: sizes are known then"),
    ("unsupported format string passed to", "", "give the tracer example_inputs: sizes are known then"),
    ("type Proxy doesn't define __round__", "", "wrap('round') at the top level of the module records the call"),
    ("unsupported operand type(s) for divmod", "", "use // and %, which are recorded"),
    ("object does not support item", "", "with example_inputs the assignment is recorded as operator.setitem"),
)  # fmt: skip


_UNBOUND = re.compile(r"descriptor '(\w+)' (for|requires a) 'torch\._C\.TensorBase' object")


def unbound_method(error):
    """Name of the method of torch.Tensor that was called through the class with a proxy; None for other errors."""
    found = _UNBOUND.match(str(error))
    return found[1] if found and "Proxy" in str(error) else None


def advise(error):
    """Adds to a TypeError that a traced program ran into a note on what would work, if it is about a Proxy."""
    text = str(error)
    if "Proxy" not in text and not text.startswith("slice indices must be integers"):
        return
    for start, middle, advice in _ADVICE:
        if start in text and middle in text:
            error.add_note(f"fxjit.fx: while tracing{_place(error.__traceback__)}: {advice}")
            return


def _place(traceback):
    """The last line of the user's in a traceback."""
    place = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_library_file(code.co_filename):
            place = f", at {code.co_filename}:{traceback.tb_lineno} in {code.co_name}"
        traceback = traceback.tb_next
    return place
