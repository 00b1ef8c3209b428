"""Ints and floats among the arguments: constants at first, numbers that vary from their second value on."""

from __future__ import annotations

_MOST_STRUCTURES = 64  # of arguments, for which values are remembered


def is_number(x) -> bool:
    """A float or int proper, that fits into a machine word."""
    return type(x) is float or (type(x) is int and -2**63 <= x < 2**63)


def same_number(a, b) -> bool:
    return type(a) is type(b) and (a.hex() == b.hex() if type(a) is float else a == b)


class _Structure:
    """One structure of arguments: its first numbers by position, and what became of the positions."""

    def __init__(self, leaves):
        self.first = {i: x for i, x in enumerate(leaves) if is_number(x)}
        self.proven, self.fixed = set(), set()  # traced with a proxy; cannot be
        self.trial, self.queue = set(), []      # to be traced next; after that, one by one

    def note_changes(self, leaves):
        for i, old in self.first.items():
            seen = i in self.proven or i in self.fixed or i in self.trial or i in self.queue
            if not seen and is_number(leaves[i]) and not same_number(leaves[i], old):
                self.queue.append(i) if self.queue else self.trial.add(i)

    def succeeded(self):
        self.proven |= self.trial
        self.trial = {self.queue.pop(0)} if self.queue else set()

    def failed(self):
        if len(self.trial) == 1:
            self.fixed |= self.trial
        else:
            self.queue = sorted(self.trial) + self.queue
        self.trial = {self.queue.pop(0)} if self.queue else set()


class Positions:
    """Which positions of a call's flattened arguments are numbers that vary.

    A position that cannot be traced as such stays a constant for good: the caller says how the trace went.
    """

    def __init__(self):
        self.structures: dict = {}

    def varying(self, kinds, leaves) -> frozenset:
        """kinds: a hashable description of structure and types; note that a number of another type is another one."""
        structure = self.structures.get(kinds)
        if structure is None:
            if len(self.structures) < _MOST_STRUCTURES:
                self.structures[kinds] = _Structure(leaves)
            return frozenset()
        if not structure.first:
            return frozenset()
        structure.note_changes(leaves)
        return frozenset(i for i in structure.proven | structure.trial if is_number(leaves[i]))

    def succeeded(self, kinds):
        self.structures[kinds].succeeded()

    def failed(self, kinds):
        self.structures[kinds].failed()
