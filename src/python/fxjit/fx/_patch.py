"""Replacing functions for the duration of a trace, and putting exactly the old ones back."""

import builtins

from .._C import set_class_function

_MISSING = object()


class Patcher:
    """A context manager that undoes, in reverse order, every replacement made through it."""

    def __init__(self):
        self._undo = []
        self.visited = set()  # ids of globals that live at least as long

    def replace_item(self, scope, name, function, once=True):
        """scope[name] = function, for a name of `scope` or of the builtins. Twice is once, unless `once` is False."""
        old = scope.get(name, _MISSING)
        if old is _MISSING and not hasattr(builtins, name):
            raise KeyError(name)
        if getattr(old, "__fxjit_patched__", False):
            return
        function.__fxjit_patched__ = once
        self.put_item(scope, name, function, old)

    def put_item(self, scope, name, function, old):
        """scope[name] = function in place of `old`, which is what is there."""
        scope[name] = function
        self._undo.append((_restore_item, scope, name, old))

    def replace_method(self, cls, name, function, once=True):
        if getattr(getattr(cls, name), "__fxjit_patched__", False):
            return
        old = vars(cls).get(name, _MISSING)  # an inherited one is inherited again afterwards
        function.__fxjit_patched__ = once
        set_class_function(cls, name, function)
        self._undo.append((_restore_attribute, cls, name, old))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while self._undo:
            restore, owner, name, old = self._undo.pop()
            restore(owner, name, old)


def _restore_attribute(cls, name, old):
    if old is _MISSING:
        delattr(cls, name)
    else:
        set_class_function(cls, name, old)


def _restore_item(scope, name, old):
    if old is _MISSING:
        del scope[name]
    else:
        scope[name] = old
