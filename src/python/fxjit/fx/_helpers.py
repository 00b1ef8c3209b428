"""What the C++ half calls for the rare cases: every function here is looked up by name from there."""

import builtins
import collections
import copy
import dis
import itertools
import operator
import sys

import torch
import torch.fx.traceback as fx_traceback
from torch.fx.proxy import _COPY_META_FIELDS

from .. import _C
from .._C import find_proxy, map_arg
from ._frames import recorded_frames, user_frame
from ._names import base_name, find_callable, pretty_name, qualified_name
from ._paths import CONSTANT_TYPES

__all__ = ["find_callable"]

_OPERATORS = (
    "add sub mul truediv floordiv mod lshift rshift and_ or_ xor matmul getitem eq ne lt gt le ge pos neg invert abs pow "
    "setitem iadd isub imul itruediv"
).split()


def immortal_functions():
    return [getattr(operator, name) for name in _OPERATORS] + [builtins.getattr]


def callable_names(fn):
    return base_name(fn), qualified_name(fn), pretty_name(fn)


_DTYPES = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
    torch.float64: 7, torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15,
}  # fmt: skip
_LAYOUTS = "strided sparse_coo sparse_csr _mkldnn sparse_csc sparse_bsr sparse_bsc jagged".split()
_MEMORY_FORMATS = "contiguous_format preserve_format channels_last channels_last_3d".split()


def torch_constants():
    """(kind, the core's value, object): what both sides know. Other dtypes travel as Python objects."""
    rows = [("d", value, dtype) for dtype, value in _DTYPES.items()]
    rows += [("l", i, getattr(torch, name)) for i, name in enumerate(_LAYOUTS)]
    return rows + [("m", i, getattr(torch, name)) for i, name in enumerate(_MEMORY_FORMATS)]


# ---- modules ----

def module_attribute(module, name):
    """(is a module, value), or None. Reads past what a trace patches."""
    for table in ("_parameters", "_buffers", "_modules"):
        found = module.__dict__.get(table, {}).get(name)
        if found is not None:
            return table == "_modules", found
    try:
        found = object.__getattribute__(module, name)
    except AttributeError:
        found = getattr(module, name, None) if not isinstance(module, torch.nn.Module) else None
    return None if found is None else (isinstance(found, torch.nn.Module), found)


def module_attributes(module):
    """(name, kind, value) with kind 0 parameter, 1 buffer, 2 plain tensor, 3 module."""
    rows = [(n, 0, v) for n, v in module._parameters.items() if v is not None]
    rows += [(n, 1, v) for n, v in module._buffers.items() if v is not None]
    rows += [(n, 2, v) for n, v in module.__dict__.items() if isinstance(v, torch.Tensor)]
    return rows + [(n, 3, v) for n, v in module._modules.items() if v is not None]


# ---- callables ----

_IN_PLACE = frozenset(
    getattr(operator, "i" + name)
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
)


_WRITING = _IN_PLACE | {
    function
    for scope in (torch, torch.nn.functional, torch._C._nn)
    for name, function in vars(scope).items()
    if name.endswith("_") and not name.endswith("__") and callable(function)
}


def is_impure(fn, args, kwargs, impure_random):
    from torch._library.utils import is_impure as torch_is_impure

    if fn in _WRITING or kwargs.get("out") is not None or kwargs.get("inplace") is True:
        return True
    return bool(torch_is_impure(fn, args=args, kwargs=kwargs, impure_random=impure_random))


def impure_functions():
    """The functions that torch lists as impure: random ones, and those with side effects; and those that write to an
    argument, which torch.fx drops though that changes what the program computes."""
    from torch._library.utils import _RANDOM_FUNCTIONS

    return _RANDOM_FUNCTIONS, torch.fx.node._side_effectful_functions, _WRITING


def is_composite(fn):
    from ._symbolic_trace import is_wrapped

    return is_wrapped(fn)


def is_always_leaf(fn):
    from ._symbolic_trace import is_always_leaf as answer

    return answer(fn)


def trace_body(graph, fn, args, kwargs):
    from .proxy import GraphAppendingTracer, Proxy

    tracer = GraphAppendingTracer(graph)
    args, kwargs = (map_arg(a, lambda n: Proxy(n, tracer)) for a in (args, kwargs))
    return tracer.create_arg(fn(*args, **kwargs))


# ---- tracers ----

def appending_tracer(graph):
    from .proxy import GraphAppendingTracer

    return GraphAppendingTracer(graph)


def current_scope(tracer, stack):
    """What nodes made now have as nn_module_stack, and the path and class of the module scope. The first is None without
    modules, the keys and values of an OrderedDict in turn, or a copy of another type of stack."""
    scope = getattr(tracer, "scope", None)
    path, kind = (scope.module_path, scope.module_type) if scope is not None else ("", None)
    if not stack:
        return None, path, kind
    if type(stack) is collections.OrderedDict:
        return tuple(itertools.chain.from_iterable(stack.items())), path, kind
    return copy.copy(stack), path, kind


# ---- trees of modules that do not tell of their submodules as torch.nn.Module does

def add_module_paths(module, path, found):
    bound = module.named_modules
    if getattr(bound, "__func__", None) is not torch.nn.Module.named_modules:  # it has its own answer
        answer = module.named_modules(set(found), path) if found else module.named_modules()
        found.update((m, name) for name, m in answer)
        return
    module = bound.__self__  # a compiled module answers with the one inside
    found[module] = path
    for name, child in module._modules.items():
        if child is not None and child not in found:
            _C.add_module_paths(child, f"{path}.{name}" if path else name, found)


def add_tensor_attributes(module, path, found):
    prefix = f"{path}." if path else ""
    for name, value in module.__dict__.items():
        if isinstance(value, CONSTANT_TYPES):
            found[value] = prefix + name
    for name, child in module.named_children():
        _C.add_tensor_attributes(child, prefix + name, found)


def forward_globals(module):
    return getattr(getattr(module, "forward", module), "__globals__", None)


def apply_current_meta(node):
    meta = fx_traceback.get_current_meta()
    if trace := meta.get("stack_trace"):
        node.stack_trace = trace
        if fx_traceback.GRADIENT_ACC_SPECIAL_STACK in trace:
            node.meta["is_gradient_acc"] = True
    node.meta.update({key: copy.copy(meta[key]) for key in _COPY_META_FIELDS if key in meta})
    number = torch.fx.proxy._get_seq_nr(node.name)
    if number is not None:
        node.meta["seq_nr"] = number
    if (replayed := fx_traceback.get_current_replay_node()) is not None:
        node.meta["is_functional_regenerated"] = True
        node.meta.update({key: replayed.meta[key] for key in ("custom", "stack_trace") if key in replayed.meta})


def record_stack_trace(tracer, node):
    if node.stack_trace:
        return
    frames = torch.utils._traceback.CapturedTraceback.extract(skip=1).summary()
    if text := _frames_text(tracer._filter_traceback_frames(frames) if frames else None):
        node.stack_trace = text


def _frames_text(frames):
    return "".join(frames.format()).strip() if frames else None


def filters_frames(tracer):
    """Whether the tracer's class says itself which frames of a stack trace count."""
    from .proxy import TracerBase

    own = tracer._filter_traceback_frames
    return getattr(own, "__func__", None) is not TracerBase._filter_traceback_frames


def stack_trace_text(gathered, forward_only):
    """Text of the frames that torch's profiler has gathered; None if none counts."""
    frames = torch.utils._traceback.CapturedTraceback(gathered).summary()
    return _frames_text(recorded_frames(frames, forward_only))


def check_mutable(target, args, kwargs):
    from torch.fx.operator_schemas import check_for_mutable_operation

    check_for_mutable_operation(target, args, kwargs)


# ---- proxies ----

def where(proxy):
    """" (node 'gt', at file.py:3 in forward)": the end of an error message about a proxy."""
    frame = user_frame(sys._getframe(1))
    place = f", at {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}" if frame else ""
    return f" (node '{proxy.node.name}'{place})"


def _instruction(frame):
    """(name, argument) of what the frame executes."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if sys.version_info < (3, 10) or at < 0:
        return "", 0
    argument, shift, prefix = code[at + 1], 8, at - 2
    while prefix >= 0 and dis.opname[code[prefix]] == "EXTENDED_ARG":
        argument |= code[prefix + 1] << shift
        shift, prefix = shift + 8, prefix - 2
    return dis.opname[code[at]], argument


def proxy_iter(proxy):
    name, count = _instruction(sys._getframe(1))
    unpacked = name == "UNPACK_SEQUENCE"
    knowledge = getattr(proxy.tracer, "knowledge", None)
    if knowledge is not None and not (unpacked and knowledge.is_tuple_of(proxy, count)):
        items = knowledge.items(proxy)
        if items is not None:
            return iter(items)
    if unpacked:
        return iter([proxy[i] for i in range(count)])
    return iter(proxy.tracer.iter(proxy))


def proxy_bool(proxy):
    tracer = proxy.tracer
    if getattr(tracer, "trace_asserts", False) and _is_assertion(sys._getframe(1)):
        from .proxy import assert_fn

        tracer.create_proxy("call_function", assert_fn, (proxy,), {})
        return True
    return tracer.to_bool(proxy)


def _is_assertion(frame):
    """Whether the frame asks for a bool to decide `assert value`: jump over LOAD_ASSERTION_ERROR … RAISE_VARARGS."""
    instructions = list(dis.get_instructions(frame.f_code))
    at = next((i for i, instruction in enumerate(instructions) if instruction.offset == frame.f_lasti), None)
    if at is None:
        return False
    if sys.version_info >= (3, 13) and instructions[at].opname in ("TO_BOOL", "COMPARE_OP"):
        at += 1  # there the jump finds a bool that was asked for before
    if "JUMP" not in instructions[at].opname or "IF_TRUE" not in instructions[at].opname:
        return False
    following = instructions[at + 1]
    if following.opname != "LOAD_ASSERTION_ERROR":
        return False
    target = next(i for i, instruction in enumerate(instructions) if instruction.offset == instructions[at].argval)
    return instructions[target - 1].opname == "RAISE_VARARGS"


def proxy_deepcopy(proxy, memo):
    new = type(proxy).__new__(type(proxy))
    memo[id(proxy)] = new
    for name, value in [("node", proxy.node), ("tracer", proxy.tracer), *proxy.__dict__.items()]:
        try:
            value = copy.deepcopy(value, memo)
        except Exception:  # noqa: BLE001 - some values cannot be copied deeply: they are shared then
            value = copy.copy(value)
        setattr(new, name, value)
    return new


def proxy_copy(proxy):
    new = type(proxy).__new__(type(proxy))
    for name, value in [("node", proxy.node), ("tracer", proxy.tracer), *proxy.__dict__.items()]:
        setattr(new, name, value)
    return new


def reject_tracers(tracers, function):
    raise RuntimeError(f"Found multiple different tracers {tracers} while trying to trace operations {function}")


def torch_function(cls, function, args, kwargs):
    """Proxy.__torch_function__ for what is no plain function, or hides its proxies in a registered container."""
    tracers = {}

    def note(leaf):
        if isinstance(leaf, cls):
            tracers[leaf.tracer] = None

    torch.utils._pytree.tree_map_(note, args)
    torch.utils._pytree.tree_map_(note, kwargs)
    if len(tracers) != 1:
        reject_tracers(list(tracers), function)
    (tracer,) = tracers
    if isinstance(function, torch._C.ScriptMethod):
        return tracer.create_proxy("call_method", function.name, (function.owner, *args), kwargs)
    if torch.overrides.is_tensor_method_or_property(function):
        return tracer.create_proxy("call_method", function.__name__, args, kwargs)
    if isinstance(function, torch._ops.HigherOrderOperator):
        found = torch.fx.proxy._find_arbitrary_callable(args, kwargs)
        if found is not None:
            raise RuntimeError(
                f"Unable to symbolically trace the HigherOrderOperator {function._name} because it received an "
                f"arbitrary callable argument {found}. Use make_fx or dynamo tracing instead."
            )
    name = tracer.graph._target_to_str(function.__name__)
    return tracer.create_proxy("call_function", function, args, kwargs, name=name)


def has_proxy(*values):
    return find_proxy(values) is not None
