"""Annotations of nodes from the signatures of what they call."""

import inspect

import torch
from torch._jit_internal import boolean_dispatched
from torch.fx.operator_schemas import _torchscript_type_to_python_type

from ..interpreter import Transformer

__all__ = ["AnnotateTypesWithSchema"]


class AnnotateTypesWithSchema(Transformer):
    """AnnotateTypesWithSchema(gm).transform(): node.type of calls of torch.nn modules, of torch.nn.functional, and of
    attributes, where it is not set already and the signature has one."""

    def __init__(self, module, annotate_functionals=True, annotate_modules=True, annotate_get_attrs=True):
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target, args, kwargs):
        proxy = super().call_function(target, args, kwargs)
        if self.annotate_functionals and getattr(target, "__module__", None) == "torch.nn.functional":
            _annotate(proxy.node, _result_of_function(target))
        return proxy

    def call_module(self, target, args, kwargs):
        proxy = super().call_module(target, args, kwargs)
        child = self.fetch_attr(target)
        if self.annotate_modules and getattr(torch.nn, type(child).__name__, None) is type(child):
            _annotate(proxy.node, _result(child.forward))
        return proxy

    def get_attr(self, target, args, kwargs):
        proxy = super().get_attr(target, args, kwargs)
        if self.annotate_get_attrs:
            inferred = torch._C._jit_try_infer_type(self.fetch_attr(target))
            if inferred.success():
                _annotate(proxy.node, _torchscript_type_to_python_type(inferred.type()))
        return proxy


def _annotate(node, annotation):
    if not node.type and annotation is not None:
        node.type = annotation


def _result(fn):
    try:
        annotation = inspect.signature(fn).return_annotation
    except (TypeError, ValueError):
        return None
    return None if annotation is inspect.Signature.empty else annotation


def _result_of_function(fn):
    """Of a function that is one of two by a flag: what both return."""
    if fn not in boolean_dispatched:
        return _result(fn)
    one, other = (_result(boolean_dispatched[fn][branch]) for branch in ("if_true", "if_false"))
    return one if one == other else None
