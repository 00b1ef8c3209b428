"""Finds the nodes at which two ways to run a graph give different results.

Derive from _MinimizerBase and define run_a and run_b; minimize() returns the culprits. fxjit.minimize does it for eager
and compiled code.
"""

import dataclasses

import torch

from .._part import CALLS, convex_hull, extract_part
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from .shape_prop import ShapeProp

__all__ = ["FxNetMinimizerBadModuleError", "FxNetMinimizerResultMismatchError", "FxNetMinimizerRunFuncError"]


class FxNetMinimizerBadModuleError(Exception):
    """The nodes cannot be a module of their own."""


class FxNetMinimizerRunFuncError(Exception):
    """run_a or run_b raised an exception."""


class FxNetMinimizerResultMismatchError(Exception):
    """The comparison found different results."""


@dataclasses.dataclass
class _MinimizerSettingBase:
    """traverse_method: "sequential" (node by node), "binary" (halves of what differs), "accumulate" (from the first
    node on, one more each time), "skip" (what lies between nodes to be skipped), "defined" (the given range as a whole),
    "block" (the smallest range that differs)
    find_all: goes on after the first culprit (sequential, binary)
    accumulate_error: run_b gets what run_b gave for earlier nodes, instead of what run_a gave
    return_intermediate: run_nodes returns the values of all its nodes
    all_outputs: all outputs of a part are compared, instead of its last node's
    """

    accumulate_error: bool = False
    traverse_method: str = "sequential"
    find_all: bool = False
    return_intermediate: bool = False
    all_outputs: bool = False

    def __str__(self):
        return "FX Minimizer Settings:\n" + "".join(f"\t{k}: {v}\n" for k, v in vars(self).items())


_CULPRIT = (FxNetMinimizerRunFuncError, FxNetMinimizerResultMismatchError)


class _MinimizerBase:
    """module: a GraphModule; sample_input: one value per placeholder

    compare_fn(a, b, names): (a number to report, whether they are equal enough)
    module_exporter(inputs, part, name): called with both inputs of a part that differs
    exclusion_fn(nodes, start, end): removes nodes from the list
    """

    def __init__(self, module, sample_input, compare_fn, settings, module_exporter=None, exclusion_fn=None):
        if not isinstance(module, GraphModule):
            raise AssertionError(f"Expected GraphModule, got {type(module)}")
        names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
        if len(names) != len(sample_input):
            raise AssertionError(
                f"Placeholder count ({len(names)}) does not match sample_input count ({len(sample_input)})"
            )
        self.module, self.sample_input = module, sample_input
        self.compare_fn, self.settings = compare_fn, settings
        self.module_exporter, self.exclusion_fn = module_exporter, exclusion_fn
        self.a_outputs = dict(zip(names, sample_input))
        self.b_outputs = dict(zip(names, sample_input))
        self.results = {}
        self.reports = []
        self.iteration = 0
        self.run_shape_prop()
        self.fusions = _non_tensor_groups(module)
        self._eager = None  # name of a node -> its value in an eager run, made at need

    # ---- to be defined ----

    def run_shape_prop(self):
        """Fills meta; may be overridden."""
        ShapeProp(self.module).propagate(*self.sample_input)

    def run_a(self, mod, inputs, report_idx=-1):
        """Runs a part; what it returns is compared with what run_b returns."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to run a part: override run_a()")

    def run_b(self, mod, inputs, report_idx=-1):
        raise NotImplementedError(f"{type(self).__name__} does not say how to run a part: override run_b()")

    # ---- parts ----

    def _build_submodule(self, nodes):
        """(a module with the part as an attribute, the attribute's name)."""
        try:
            part, _, _ = extract_part(self.module, nodes)
        except ValueError as e:
            names = ", ".join(sorted(node.name for node in nodes))
            raise FxNetMinimizerBadModuleError(f"{names}: {e}") from e
        main = torch.nn.Module()
        main.minimize = part
        return main, "minimize"

    def _get_submod_inputs(self, main_module, submod_path):
        names = [n.name for n in getattr(main_module, submod_path).graph.nodes if n.op == "placeholder"]
        a = [self._value(name, self.a_outputs) for name in names]
        if not self.settings.accumulate_error:
            return a, a
        return a, [self._value(name, self.b_outputs) for name in names]

    def _value(self, name, outputs):
        """What a run gave for a node; an eager run's value where it was in no part yet."""
        if name in outputs:
            return outputs[name]
        if self._eager is None:
            run = Interpreter(self.module, garbage_collect_values=False)
            run.run(*self.sample_input)
            self._eager = {node.name: value for node, value in run.env.items()}
        return self._eager[name]

    def _store_outputs(self, a_result, b_result, submodule):
        result = submodule.graph.output_node().args[0]
        if isinstance(result, tuple):
            for i, node in enumerate(result):
                self.a_outputs[node.name], self.b_outputs[node.name] = a_result[i], b_result[i]
        else:
            self.a_outputs[result.name], self.b_outputs[result.name] = a_result, b_result

    def _run_and_compare(self, split_module, submod_name, output_names, report_idx=-1):
        """Raises one of the errors above where the part differs."""
        part = getattr(split_module, submod_name)
        a_input, b_input = self._get_submod_inputs(split_module, submod_name)
        if not self.reports:
            self.reports.append([])
            self.iteration = 1
        report = self.reports[report_idx if report_idx >= 0 else self.iteration - 1]
        report.append("Run and compare ...")
        if output_names and not self.settings.all_outputs:
            _set_outputs(part, output_names)
        result = part.graph.output_node().args[0]
        key = tuple(node.name for node in result) if isinstance(result, tuple) else (result.name,)
        try:
            a_result = self.run_a(part, a_input, report_idx)
            b_result = self.run_b(part, b_input, report_idx)
            self._store_outputs(a_result, b_result, part)
        except Exception as e:  # noqa: BLE001 - whatever a backend raises is what is looked for
            report.append(f"Exception raised when running {submod_name}: {e}")
            raise FxNetMinimizerRunFuncError(f"Exception raised when running {submod_name}: {e}") from e
        number, equal = self.compare_fn(a_result, b_result, output_names or list(key))
        self.results[key] = number
        report.append(f"Numerical accuracy = {number}")
        if not equal:
            report.append(f"Result mismatch for {key}")
            if self.module_exporter:
                self.module_exporter(a_input, part, key[-1] + "_cpu")
                self.module_exporter(b_input, part, key[-1] + "_acc")
            raise FxNetMinimizerResultMismatchError(f"Result mismatch for {key}")

    def _differs(self, nodes, output_names, report_idx=-1):
        """The kind of difference that a part makes, or None."""
        try:
            main, name = self._build_submodule(nodes)
            self._run_and_compare(main, name, output_names, report_idx)
        except _CULPRIT as e:
            return "run" if isinstance(e, FxNetMinimizerRunFuncError) else "numeric"
        return None

    def _begin(self, *lines):
        report = list(lines)
        self.reports.append(report)
        self.iteration = len(self.reports)
        return report

    def _without_excluded(self, nodes, start=-1, end=-1):
        nodes = list(nodes)
        if self.exclusion_fn is not None:
            self.exclusion_fn(nodes, start, end)
        return nodes

    # ---- ways to traverse ----

    def _sequential_traverse(self, nodes):
        culprits = set()
        for node in nodes:
            report = self._begin(f"Sequential traverse iteration {len(self.reports) + 1}.", f"Visit node: {node.name}")
            if not self._without_excluded([node]):
                report.append(f"User exclusion : {node.name}")
                self.print_report(report)
                if not self.settings.find_all:
                    break
                continue
            part = self.fusions.get(node, {node})
            kind = self._differs(part, [node.name])
            if kind is not None:
                culprits.update({node} if kind == "numeric" else part)
                report.append(f"Found culprit from {kind} error: {node}")
            self.print_report(report)
            if culprits and not self.settings.find_all:
                break
        return culprits

    def _binary_traverse(self, nodes):
        return self._binary_search_impl(nodes, 0, len(nodes))

    def _binary_search_impl(self, all_nodes, start_idx, end_idx):
        nodes = self._without_excluded(all_nodes[start_idx:end_idx], start_idx, end_idx)
        if not nodes:
            self._begin("All nodes are excluded by user")
            return set()
        report = self._begin(
            f"Binary search iteration {len(self.reports) + 1}",
            f"From node index {start_idx}:{nodes[0].name} to {end_idx - 1}:{nodes[-1].name}. Size of the interested "
            f"node list is {len(nodes)}",
        )
        if self._differs(set(nodes), [nodes[-1].name]) is None:
            report.append("No discrepancy found.")
            self.print_report(report)
            return set()
        if len(nodes) == 1:
            report.append(f"This is the last node in the sub-module. Culprit: {nodes[0]}")
            self.print_report(report)
            return set(nodes)
        report.append("Proceed to split and lower the halves of the current sub-module individually.")
        self.print_report(report)
        middle = start_idx + max(1, (end_idx - start_idx) // 2)
        culprits = self._binary_search_impl(all_nodes, start_idx, middle)
        if not culprits or self.settings.find_all:
            culprits = culprits | self._binary_search_impl(all_nodes, middle, end_idx)
        if not culprits:
            report.append("Further split and lowering found no errors. Unable to minimize the submodule.")
            culprits = self._inseparable(nodes)
        return culprits

    def _inseparable(self, nodes):
        """The culprits where a part differs and its halves do not: none, as in torch.fx."""
        return set()

    def _accumulate_traverse(self, nodes):
        if self.settings.find_all:
            print("'Find All' mode is not supported in accumulate traversal.")
            return set()
        part = set()
        for node in nodes:
            report = self._begin(f"Accumulate traverse iteration {len(self.reports) + 1}.", f"Add node: {node.name}")
            part.add(node)
            if self._differs(part, [node.name]) is not None:
                report.append(f"Found culprit {node}")
                self.print_report(report)
                return {node}
            self.print_report(report)
        return set()

    def _skip_traverse(self, all_nodes, skip_nodes):
        culprits, block = set(), []
        for node in [*all_nodes, None]:
            if node is not None and node.name not in skip_nodes:
                block.append(node)
                continue
            block, nodes = [], self._without_excluded(block)
            if not nodes:
                continue
            part = convex_hull(self.module.graph, {m for n in nodes for m in self.fusions.get(n, {n})})
            report = self._begin(f"Nodes block from {nodes[0].name} to {nodes[-1].name}: {len(nodes)} nodes.")
            kind = self._differs(part, [])
            report.append("No discrepancy found." if kind is None else f"Found culprit from {kind} error: {part}")
            self.print_report(report)
            if kind is not None:
                culprits |= part
        return culprits

    def _defined_traverse(self, nodes):
        nodes = self._without_excluded(nodes)
        if not nodes:
            self._begin("All nodes are excluded by user")
            return set()
        report = self._begin(f"Defined graph from {nodes[0].name} to {nodes[-1].name}")
        differs = self._differs(set(nodes), [nodes[-1].name]) is not None
        report.append(f"Found culprit {nodes}" if differs else "No discrepancy found.")
        self.print_report(report)
        return set(nodes) if differs else set()

    def _block_traverse(self, nodes, find_last_node):
        """The last node of the block by growing from the first node, the first one by shrinking towards the last."""
        first, last = 0, len(nodes) - 1
        if find_last_node is None or find_last_node:
            last = self._border(len(nodes), lambda i: self._block_differs(nodes[: i + 1]))
            if last is None:
                return set()
        if not find_last_node:
            # From the end: the latest start with which the block still differs.
            count = last + 1
            steps = self._border(count, lambda i: self._block_differs(nodes[count - 1 - i : last + 1]))
            if steps is None:
                return set()
            first = count - 1 - steps
        report = self._begin(f"Finish searching, found minimum block ({nodes[first]},{nodes[last]})")
        self.print_report(report)
        return set(nodes[first : last + 1])

    def _block_differs(self, nodes):
        nodes = self._without_excluded(nodes)
        if not nodes:
            return False
        report = self._begin(f"Block search from {nodes[0].name} to {nodes[-1].name}: {len(nodes)} nodes")
        differs = self._differs(set(nodes), [nodes[-1].name]) is not None
        report.append("Culprits found." if differs else "No culprits found.")
        self.print_report(report)
        return differs

    @staticmethod
    def _border(count, differs):
        """The smallest i below `count` for which differs(i), where it stays so from there on; None without one."""
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if differs(middle):
                high = middle
            else:
                low = middle + 1
        return None if low == count else low

    # ---- for users ----

    def _collect_nodes(self, start, end):
        nodes, begun = [], start is None
        for node in self.module.graph.nodes:
            begun = begun or node.name == start
            if begun and node.op in CALLS:
                nodes.append(node)
            if node.name == end:
                break
        return nodes

    def run_nodes(self, start=None, end=None):
        """Runs and compares the nodes from `start` to `end` (names, both included; None: from the first, to the last)
        as one part, and prints what differs."""
        nodes = self._collect_nodes(start, end)
        part = convex_hull(self.module.graph, {m for n in nodes for m in self.fusions.get(n, {n})})
        names = [node.name for node in nodes] if self.settings.return_intermediate else []
        try:
            main, name = self._build_submodule(part)
            self._run_and_compare(main, name, names)
        except _CULPRIT as e:
            print(e)

    def print_report(self, report):
        for i, line in enumerate(report):
            print(f" . {line}" if i else line)

    def print_reports(self):
        for report in self.reports:
            self.print_report(report)

    def minimize(self, start=None, end=None, skip_nodes=None, find_last_node=None):
        """The set of nodes between `start` and `end` (names) that differ, by settings.traverse_method.

        skip_nodes: names, for "skip"; find_last_node: for "block", True or False looks for one end of the block only
        """
        print(self.settings)
        print(self.module.graph)
        nodes = self._collect_nodes(start, end)
        method = self.settings.traverse_method
        if method == "skip":
            if skip_nodes is None:
                raise RuntimeError("'skip_nodes' can't be None when 'traverse_method' is 'skip'.")
            return self._skip_traverse(nodes, skip_nodes)
        if method == "block":
            return self._block_traverse(nodes, find_last_node) if nodes else set()
        if method not in ("sequential", "binary", "accumulate", "defined"):
            raise RuntimeError(f"Unknown traverse method {method}!")
        return getattr(self, f"_{method}_traverse")(nodes)


def _set_outputs(part, names):
    nodes = [node for node in part.graph.nodes if node.name in names and node.op != "placeholder"]
    part.graph.output_node().args = (nodes[0] if len(nodes) == 1 else tuple(nodes),)
    part.graph.lint()
    part.recompile()


def _non_tensor_groups(module):
    """node -> the nodes that must be run with it: values that are no tensors do not leave a part."""
    groups = {}
    for node in module.graph.nodes:
        kind = node.meta.get("type")
        if node.op not in CALLS or not isinstance(kind, type) or issubclass(kind, torch.Tensor):
            continue
        group = {node, *(user for user in node.users if user.op in CALLS)}
        for other in list(group):
            group |= groups.get(other, set())
        group = convex_hull(module.graph, group)
        for member in group:
            groups[member] = group
    return groups
