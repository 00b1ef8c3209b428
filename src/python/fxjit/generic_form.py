"""The generic form of a graph: one runtime call per node, for whatever no specialisation covers."""

from __future__ import annotations

import warnings

from . import _C
from .fx._run import SnapshotInterpreter


class GenericForm:
    """Runs a graph on one value per placeholder, which may be of any kind. Its code is made by the first call; where that
    fails, which is a bug of ours, the interpreter runs the same graph."""

    def __init__(self, root, graph):
        self.root, self.graph, self._run = root, graph, None

    def __call__(self, values, options, note):
        """The graph's result. note(why) is called where there is no code."""
        if self._run is None:
            try:
                _C.fault_point(options, "generic")
                self._run = _C.GenericForward(self.graph)
            except Exception as e:  # noqa: BLE001
                note(f"the generic form cannot be made: {e}")
                warnings.warn(f"fxjit: the generic form cannot be made: {e}", RuntimeWarning, stacklevel=2)
                self._run = self._interpret
        return self._run(self.root, values)

    @property
    def native(self):
        """The code, a _C.GenericForward; None where there is none."""
        return self._run if isinstance(self._run, _C.GenericForward) else None

    def _interpret(self, root, values):
        return SnapshotInterpreter(root, self.graph).run(*values, enable_io_processing=False)
