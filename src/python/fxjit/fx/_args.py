"""From the signature of the traced function to placeholders."""

import inspect
import types
import warnings

import torch
import torch.utils._pytree as pytree
from torch.fx._symbolic_trace import PH, PHBase
from torch.fx.node import base_types

from .graph import PyTreeCodeGen, PyTreeInfo

_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def with_plain_parameters(fn, count):
    """`fn` with its first `count` local variables as ordinary parameters: what was *args takes a proxy then."""
    code = fn.__code__.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=fn.__code__.co_flags & ~_STARS
    )
    return types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


def create_args_for_root(tracer, root_fn, is_module, concrete_args):
    analysed = inspect.unwrap(root_fn)
    code = analysed.__code__
    total = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames)
    args = []
    if is_module:
        if total == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        args.append(tracer.root)
    signature = inspect.signature(analysed)
    starred = bool(code.co_flags & _STARS)

    # A flat tuple of concrete arguments for a function that takes (*args, **kwargs).
    if isinstance(concrete_args, tuple) and concrete_args and starred and total == 1:
        for i, value in enumerate(concrete_args):
            out = tracer.create_proxy("placeholder", f"input_{i}", (), {})
            _transfer_attributes(value, out.node)
            args.append(out)
        return root_fn, args

    parameters = names[len(args) : total]
    if isinstance(concrete_args, tuple):
        if len(parameters) != len(concrete_args):
            raise RuntimeError(
                f"Tracing expected {len(parameters)} arguments but got {len(concrete_args)} concrete arguments"
            )
        concrete_args = dict(zip(parameters, concrete_args))

    def placeholder(name):
        return tracer._proxy_placeholder(name, concrete_args, signature, analysed)

    args.extend(placeholder(name) for name in parameters)
    if code.co_kwonlyargcount > 0 or starred:
        rest = iter(names[total:])
        if code.co_flags & inspect.CO_VARARGS:
            args.append(placeholder("*" + next(rest)))
        if code.co_flags & inspect.CO_VARKEYWORDS:
            args.append(placeholder("**" + next(rest)))
        root_fn = with_plain_parameters(root_fn, len(args))
    return _flatten(tracer, root_fn, args, names[:total])


def _flatten(tracer, root_fn, args, names):
    """Where concrete_args gave arguments with structure: a function of their leaves."""
    leaves, spec = pytree.tree_flatten(tuple(args))
    if all(child.is_leaf() for child in spec.children()):
        return root_fn, args
    info = PyTreeInfo(names, spec, None)
    tracer.graph.set_codegen(PyTreeCodeGen(info))

    def flat_root(*leaves):
        out, info.out_spec = pytree.tree_flatten(root_fn(*pytree.tree_unflatten(list(leaves), spec)))
        return out

    return flat_root, leaves


def _transfer_attributes(placeholder, node):
    """What the user has put on a placeholder object other than PH is put on the node."""
    if not isinstance(placeholder, PHBase) or placeholder is PH:
        return
    for name in dir(placeholder):
        value = getattr(placeholder, name)
        if not callable(value) and not name.startswith("__") and not hasattr(node, name):
            setattr(node, name, value)


def proxy_placeholder(tracer, name, concrete_args, signature, analysed):
    default = ()
    if name[0] != "*":
        parameter = signature.parameters[name]
        default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
    if concrete_args is None or name not in concrete_args:
        annotation = analysed.__annotations__.get(name)
        return tracer.create_proxy("placeholder", name, default, {}, type_expr=annotation)
    count = 0

    def fix(value):
        nonlocal count
        count += 1
        out = tracer.create_proxy("placeholder", f"{name}_{count}", default, {})
        if isinstance(value, PHBase):
            _transfer_attributes(value, out.node)
            return out
        _check_later(tracer, name, out, value)
        return value

    return pytree.tree_map(fix, concrete_args[name])


def _check_later(tracer, name, out, value):
    """A node that fails when the graph is run with another value than it was traced with."""
    if type(value) is bool or (type(value) in base_types and type(value) is not torch.Tensor):
        torch._assert(out == value, f"{name} has been specialized to have value {value} but got another value")
    elif value is None:
        from ._symbolic_trace import _assert_is_none

        text = f"{name} has been specialized to have value None but got another value"
        tracer.create_proxy("call_function", _assert_is_none, (out, text), {})
    else:
        warnings.warn(
            f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
            f"user to make sure that your inputs match the inputs you specialized the function with.",
            stacklevel=2,
        )
