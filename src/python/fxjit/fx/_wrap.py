"""wrap: functions that stay one node. Both registries count, ours and torch.fx's (torchvision registers leaves there)."""

import builtins
import dis
import functools
import inspect
import math

import torch.fx._symbolic_trace as torch_tracing

from .._C import dict_version, find_proxy
from ._factories import patch_factories
from .proxy import TracerBase

# (id of a module's globals, name) → those globals: the name is replaced there during a trace.
_wrapped_fns_to_patch = {}
_wrapped_methods_to_patch = torch_tracing._wrapped_methods_to_patch  # (class, name): one list for both
_leaf_calls = {}  # the same keys → (function, globals, keep, what stands for the function during a trace)
_always_leaf = set()  # (id of globals, name) of functions wrapped with leaf=True


def wrap(fn_or_name, leaf=False):
    """Marks a function as a leaf: a call of it with proxies is recorded as one call_function node. To be called at the
    top level of the module whose global the function is, with the function or its name; also a decorator.

    leaf: the call is kept by fxjit.compile as well, which otherwise may look into a function that does nothing but
    tensor operations on its arguments.

    Errors: RuntimeError for what is neither callable nor a name, NotImplementedError inside of a function, NameError
    for a name that the module neither has nor will define.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    scope = frame.f_globals
    if name not in scope and not hasattr(builtins, name) and not _will_define(frame.f_code, name):
        raise NameError(f"wrap: the module {scope.get('__name__')!r} has no global {name!r}")
    key = (id(scope), name)
    _wrapped_fns_to_patch[key] = scope
    if leaf:
        _always_leaf.add(key)
    return fn_or_name


def _will_define(code, name):
    """Whether a module's code assigns the name somewhere: a decorator runs before its function has its name."""
    if name not in code.co_names:
        return False
    return any(i.opname in ("STORE_NAME", "STORE_GLOBAL") and i.argval == name for i in dis.get_instructions(code))


def _registered(fn, keys):
    name, scope = getattr(fn, "__name__", None), getattr(fn, "__globals__", None)
    return scope is not None and (id(scope), name) in keys


def is_wrapped(fn):
    """Whether wrap was called for this function, in its own module."""
    return _registered(fn, _wrapped_fns_to_patch) or _registered(fn, torch_tracing._wrapped_fns_to_patch)


def is_always_leaf(fn):
    """Whether the function was wrapped with leaf=True."""
    return _registered(fn, _always_leaf)


def leaf_call(fn, keep=False, scope=None, name=None):
    """`fn` as it is called during a trace: recorded if there are proxies, unless the tracer opens it. scope[name] is
    where the trace has put the result."""

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        proxy = find_proxy((args, kwargs))
        if proxy is None:
            return fn(*args, **kwargs)
        if keep or _is_leaf(proxy.tracer, fn, scope, name):
            return record_leaf(proxy.tracer, fn, args, kwargs)
        return fn(*args, **kwargs)

    return wrapped


def _is_leaf(tracer, fn, scope, name):
    hook = getattr(tracer, "is_leaf_function", None)
    if hook is None or getattr(hook, "__func__", None) is TracerBase.is_leaf_function:
        return True
    # `return fn is not my_composite` in the user's hook must see the function, not what the trace has put there.
    patched = scope.get(name) if scope is not None else None
    if patched is None:
        return hook(fn)
    scope[name] = fn
    try:
        return hook(fn)
    finally:
        scope[name] = patched


def record_leaf(tracer, fn, args, kwargs):
    result = tracer.create_proxy("call_function", fn, args, kwargs)
    result.node.meta["is_wrapped"] = True
    return result


def call_leaf(tracer, fn, args, kwargs):
    """A call of a wrapped function that is not reached through its name."""
    keep = is_always_leaf(fn) or _is_leaf(tracer, fn, getattr(fn, "__globals__", None), getattr(fn, "__name__", None))
    return record_leaf(tracer, fn, args, kwargs) if keep else fn(*args, **kwargs)


def _leaf_method(cls, name):
    original = getattr(cls, name)

    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        proxy = find_proxy((args, kwargs))
        if proxy is None:
            return original(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _known_leaf_call(key, fn, scope, keep):
    known = _leaf_calls.get(key)
    if known is not None and known[0] is fn and known[1] is scope and known[2] == keep:
        return known[3]
    return None


def _lasting_leaf_call(key, fn, scope, keep):
    """leaf_call of a function in a scope that lasts: the same from trace to trace, as long as the function is."""
    known = _known_leaf_call(key, fn, scope, keep)
    if known is None:
        known = leaf_call(fn, keep, scope, key[1])
        _leaf_calls[key] = fn, scope, keep, known
    return known


def patch_wrapped_functions(patcher):
    for registry in (_wrapped_fns_to_patch, torch_tracing._wrapped_fns_to_patch):
        for key, scope in list(registry.items()):
            name = key[1]
            fn = scope.get(name, getattr(builtins, name, None))
            if fn is None:
                raise KeyError(name)
            known = _known_leaf_call(key, fn, scope, key in _always_leaf)
            if known is not None and name in scope:
                patcher.put_item(scope, name, known, fn)
                continue
            if getattr(fn, "__fxjit_patched__", False):
                continue  # by the trace that this one is nested in
            patcher.replace_item(scope, name, _lasting_leaf_call(key, fn, scope, key in _always_leaf))
    for cls, name in _wrapped_methods_to_patch:
        patch_methods(patcher, cls, [name])


def patch_methods(patcher, cls, names):
    """Calls of these methods with proxies, also as self, are recorded as call_method."""
    for name in names:
        patcher.replace_method(cls, name, _leaf_method(cls, name))


# id of a module's globals → their version and the ids that were looked for, where nothing was found that a trace replaces.
# Going through the globals of each module that is called took as long as recording the calls.
_without_leaves = {}


def patch_globals(patcher, scope, function_ids):
    """Makes leaves of torch's factories and of those functions in `scope`, a module's globals, whose ids are given."""
    if id(scope) in patcher.visited:
        return
    patcher.visited.add(id(scope))
    version = dict_version(scope)
    if _without_leaves.get(id(scope)) == (version, function_ids):
        return
    patch_factories(patcher, scope)
    # Looking up the id first: it is what nearly all values fail.
    for name, value in list(scope.items()):
        if id(value) not in function_ids or name.startswith("_") or not callable(value):
            continue
        if scope is math.__dict__:
            patcher.replace_item(scope, name, _lasting_leaf_call((id(scope), name), value, scope, False))
        else:
            patcher.replace_item(scope, name, leaf_call(value, False, scope, name))
    if dict_version(scope) == version:
        if len(_without_leaves) > 1000:  # of modules that are long gone
            _without_leaves.clear()
        _without_leaves[id(scope)] = version, frozenset(function_ids)
