"""From the signature of the traced function to placeholders."""

import functools
import inspect
import operator
import types
import warnings

import torch
import torch.utils._pytree as pytree
from torch.fx._symbolic_trace import PH, PHBase
from torch.fx.node import base_types

from .._C import Proxy
from .graph import PyTreeCodeGen, PyTreeInfo
from .node import Node

_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


# inspect's functions are called where they have something to say: each of them takes as long as recording many nodes.

def unwrapped(fn):
    """inspect.unwrap(fn)"""
    return inspect.unwrap(fn) if hasattr(fn, "__wrapped__") else fn


def annotations(fn):
    """inspect.get_annotations(inspect.unwrap(fn))"""
    fn = unwrapped(fn)
    return fn.__annotations__ if type(fn) is types.FunctionType else inspect.get_annotations(fn)


class _LazySignature:
    """inspect.signature(fn), made when somebody looks at it."""

    def __init__(self, fn):
        self._function = fn

    @functools.cached_property
    def _signature(self):
        return inspect.signature(self._function)

    def __getattr__(self, name):
        return getattr(self._signature, name)


def _may_have_defaults(fn):
    return type(fn) is not types.FunctionType or fn.__defaults__ or fn.__kwdefaults__ or hasattr(fn, "__signature__")


def with_plain_parameters(fn, count):
    """`fn` with its first `count` local variables as ordinary parameters: what was *args takes a proxy then."""
    code = fn.__code__.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=fn.__code__.co_flags & ~_STARS
    )
    return types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


def bind_examples(fn, is_module, example_inputs):
    """Name of each parameter → its example; empty without example inputs."""
    if example_inputs is None:
        return {}
    if not isinstance(example_inputs, (tuple, list, dict)):
        raise TypeError(f"example_inputs is a tuple of arguments or a dict, not {type(example_inputs).__name__}")
    signature = inspect.signature(inspect.unwrap(fn))
    parameters = list(signature.parameters.values())
    if is_module and parameters:
        parameters.pop(0)
    signature = signature.replace(parameters=parameters)
    try:
        if isinstance(example_inputs, dict):
            bound = signature.bind_partial(**example_inputs)
        else:
            bound = signature.bind_partial(*example_inputs)
    except TypeError as e:
        raise TypeError(f"example_inputs do not fit the parameters {signature} of {fn.__name__}: {e}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def create_args_for_root(tracer, root_fn, is_module, concrete_args):
    analysed = unwrapped(root_fn)
    code = analysed.__code__
    total = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames)
    args = []
    if is_module:
        if total == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        args.append(tracer.root)
    signature = _LazySignature(analysed)
    starred = bool(code.co_flags & _STARS)

    # A flat tuple of concrete arguments for a function that takes (*args, **kwargs).
    if isinstance(concrete_args, tuple) and concrete_args and starred and total == 1:
        for i, value in enumerate(concrete_args):
            factory = _known_leaf(tracer, _starred_examples(tracer, names[total]), i)
            out = tracer.create_proxy("placeholder", f"input_{i}", (), {}, proxy_factory_fn=factory)
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
    first = int(is_module)
    return _flatten(tracer, root_fn, args[:first], args[first:], names[first:total])


def _flatten(tracer, root_fn, bound, args, names):
    """Where concrete_args gave arguments with structure: a function of their leaves. bound: a module in front."""
    if all(type(a) is Proxy for a in args):
        return root_fn, bound + args
    leaves, spec = pytree.tree_flatten(tuple(args))
    if all(child.is_leaf() for child in spec.children()):
        return root_fn, bound + args
    stars = [n.target for n in tracer.graph.find_nodes(op="placeholder") if n.target.startswith("*")]
    info = PyTreeInfo(names + stars, spec, None)
    tracer.graph.set_codegen(PyTreeCodeGen(info))

    def flat_root(*leaves):
        out, info.out_spec = pytree.tree_flatten(root_fn(*bound, *pytree.tree_unflatten(list(leaves), spec)))
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


def _know(tracer, example):
    """A proxy_factory_fn for an input of which an example is known."""

    def make(node):
        tracer.knowledge.values.examples[node] = example
        if example is None:  # `x is None` cannot be recorded: it is decided here
            tracer.knowledge.note_identity(node, None)
            return None
        return tracer.proxy(node)

    return make


def _known_input(tracer, name):
    examples = getattr(tracer, "_examples", {})
    return _know(tracer, examples[name.lstrip("*")]) if name.lstrip("*") in examples else None


def _example_leaves(tracer, name, concrete):
    """One example per leaf of a concrete argument, or None without examples."""
    examples = getattr(tracer, "_examples", {})
    if name not in examples:
        return None
    leaves, count = pytree.tree_leaves(examples[name]), len(pytree.tree_leaves(concrete))
    if len(leaves) != count:
        raise ValueError(f"the example input for '{name}' has {len(leaves)} values where concrete_args has {count}")
    return leaves


def _starred_examples(tracer, name):
    return getattr(tracer, "_examples", {}).get(name)


def _known_leaf(tracer, examples, i):
    return None if examples is None else _know(tracer, examples[i])


def proxy_placeholder(tracer, name, concrete_args, signature, analysed):
    default = ()
    if name[0] != "*" and _may_have_defaults(analysed):
        parameter = signature.parameters[name]
        default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
        if isinstance(parameter.default, Node):  # the root is a GraphModule, and this an attribute of it
            default = (operator.attrgetter(parameter.default.target)(tracer.root),)
    if concrete_args is None or name not in concrete_args:
        annotation = analysed.__annotations__.get(name)
        factory = _known_input(tracer, name)
        return tracer.create_proxy(
            "placeholder", name, default, {}, type_expr=annotation, proxy_factory_fn=factory
        )
    count = 0
    examples = _example_leaves(tracer, name, concrete_args[name])

    def fix(value):
        nonlocal count
        count += 1
        factory = _known_leaf(tracer, examples, count - 1) if isinstance(value, PHBase) else None
        out = tracer.create_proxy("placeholder", f"{name}_{count}", default, {}, proxy_factory_fn=factory)
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
