"""Watches a pass: which nodes it makes, erases and replaces, and pictures of before and after."""

import os

from ..traceback import NodeSource, NodeSourceAction
from .graph_drawer import FxGraphDrawer

__all__ = ["GraphTransformObserver"]


class GraphTransformObserver:
    """with GraphTransformObserver(gm, "my_pass") as observer: change gm.graph

    created_nodes and erased_nodes are names. New nodes get meta["from_node"]: the pass, and the nodes they replace.

    log_url: a folder for pass_<n>_<passname>_input_graph and _output_graph as .dot and .svg, with what was erased and
    created in another colour
    subsystem: the first part of the pass's name in files
    """

    _passes = 0

    def __init__(self, gm, passname, subsystem=None, log_url=None):
        self.gm, self.passname, self.subsystem, self.log_url = gm, passname, subsystem, log_url
        self.active = True
        self.erased_nodes, self.created_nodes = set(), set()
        self.name_to_node = {}
        self.copied_gms = []
        self._hooks = {
            "create": self._created, "erase": self._erased, "replace": self._replaced, "deepcopy": self.copied_gms.append
        }  # fmt: skip

    @classmethod
    def get_current_pass_count(cls):
        return cls._passes

    def apply_gm_pass(self, pass_fn):
        """The result of pass_fn(gm), watched."""
        with self:
            return pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn):
        """The result of pass_fn(gm.graph), watched."""
        with self:
            return pass_fn(self.gm.graph)

    def __enter__(self):
        if self.log_url is not None:
            GraphTransformObserver._passes += 1
            self._before = FxGraphDrawer(self.gm, self.passname, ignore_getattr=True, ignore_parameters_and_buffers=True)
        self.erased_nodes.clear()
        self.created_nodes.clear()
        self.copied_gms.clear()
        self.name_to_node = {node.name: node for node in self.gm.graph.nodes}
        self._each_hook([self.gm], "_register_")
        return self

    def __exit__(self, kind, error, trace):
        self._each_hook([*self.copied_gms, self.gm], "_unregister_")
        if self.log_url is None or not (self.created_nodes or self.erased_nodes):
            return
        after = FxGraphDrawer(self.gm, self.passname, ignore_getattr=True, ignore_parameters_and_buffers=True)
        for drawer, changed, which in (
            (self._before, self.erased_nodes, "input"),
            (after, self.created_nodes, "output"),
        ):
            picture = drawer.get_dot_graph()
            picture.mark(changed)
            name = "_".join(filter(None, ["pass", str(self._passes), self.subsystem, self.passname, which, "graph"]))
            picture.write_dot(os.path.join(self.log_url, name + ".dot"))
            picture.write_svg(os.path.join(self.log_url, name + ".svg"))

    def _each_hook(self, modules, verb):
        for module in modules:
            for event, hook in self._hooks.items():
                noun = event if event == "deepcopy" else f"{event}_node"
                getattr(module, f"{verb}{noun}_hook")(hook)

    def _created(self, node):
        self.created_nodes.add(node.name)
        self.name_to_node[node.name] = node
        node.meta["from_node"] = [
            *node.meta.get("from_node", []), NodeSource(None, self.passname, NodeSourceAction.CREATE)
        ]  # fmt: skip

    def _erased(self, node):
        self.erased_nodes.add(node.name)
        self.name_to_node.pop(node.name, None)

    def _replaced(self, old, new, user):
        """Called once for each user: the first call notes what `new` stands for."""
        node = self.name_to_node.get(new)
        if node is None:
            return
        sources = node.meta.get("from_node", [])
        if any(source.name == old.name for source in sources):
            return
        actions = [NodeSourceAction.REPLACE]
        if node.name in self.created_nodes:
            actions.append(NodeSourceAction.CREATE)
        kept = [s for s in sources if not (s.pass_name == self.passname and s.action == [NodeSourceAction.CREATE])]
        node.meta["from_node"] = [*kept, NodeSource(old, self.passname, actions)]
