"""What a pass is."""

import abc
from typing import Any, NamedTuple

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """graph_module: what the pass made of its argument; modified: whether it changed anything."""

    graph_module: Any
    modified: bool


class PassBase(abc.ABC):
    """A pass as an object that is called with a GraphModule: checks before, the pass itself, checks behind."""

    def __call__(self, graph_module):
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module):
        """The pass. Returns a PassResult or None."""

    def requires(self, graph_module):  # noqa: B027
        """Raises if the pass cannot run on this module."""

    def ensures(self, graph_module):  # noqa: B027
        """Raises if the pass has not done what it promises."""
