"""What explain() returns."""

from __future__ import annotations

import types


class Explanation:
    """What explain() returns: attributes to read, and a readable str().

    capture: how the program became a graph; specialisations: one dict each (inputs, guards, kernels, library_calls,
    aten_calls, stages in milliseconds); fallbacks: calls that went elsewhere and why; kernels, stages: of all
    specialisations together; guards: for each captured graph, what its control flow found and calls must share.
    """

    def __init__(self, reports, notes, guards=(), picture=None, eager_calls=None):
        eager_calls = eager_calls or {}  # by reason
        self.picture = picture
        self.capture = reports[0]["capture"] if reports else "none" if eager_calls else "nothing was called yet"
        self.guards = [[str(g) for g in conditions] for conditions in guards]
        self.notes = notes + [n for r in reports for n in r["notes"]]
        self.specialisations = [s for r in reports for s in r["specialisations"]]
        self.fallbacks = [f for r in reports for f in r["fallbacks"]]
        self.fallbacks += [{"node": "", "target": "eager", "reason": reason, "nodes": []} for reason in eager_calls]
        self.generic_calls = sum(r["generic_calls"] for r in reports) + sum(eager_calls.values())
        self.recorded_calls = sum(r["recorded_calls"] for r in reports)
        self.kernels = [types.SimpleNamespace(**k) for s in self.specialisations for k in s["kernels"]]
        self.stages: dict[str, float] = {}
        for s in self.specialisations:
            for stage, ms in s["stages"].items():
                self.stages[stage] = self.stages.get(stage, 0.0) + ms
        texts = [_guards_text(g) + r["text"] for g, r in zip(self.guards or [[]] * len(reports), reports)]
        eager = ["".join(f"eager, {calls} calls: {reason}\n" for reason, calls in eager_calls.items())] if eager_calls else []
        self._text = "\n".join([f"note: {n}" for n in notes] + texts + eager) or self.capture + "\n"

    def draw(self, path):
        """Writes a picture of the program, as .svg or .dot: each node in the colour of what became of it."""
        self.picture().write(path)

    def __str__(self):
        return self._text

    __repr__ = __str__


def _guards_text(guards):
    return f"captured for: {', '.join(guards)}\n" if guards else ""
