"""GraphModule: a graph with the attributes that it uses, as an nn.Module."""

import contextlib
import copy
import functools
import inspect
import itertools
import operator
import types

import torch

from .._C import companion, find_proxy, generic_code
from ._guard_check import bind_guards
from ._readable import readable
from ._run import REQUIRED, Retracer
from .graph import Graph
from .node import Node

__all__ = ["GraphModule"]

_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
_STATE_HOOKS = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")


class GraphModule(torch.nn.Module):
    """GraphModule(root, graph, class_name="GraphModule")

    root: the module whose attributes the graph uses, or a dict from qualified names to them. References to exactly
    those are taken.

    Editing the graph takes effect at recompile(), or when `graph` is assigned.
    """

    def __new__(cls, *args, **kwargs):
        # Each instance has a class of its own, with its own forward.
        base = next(t for t in cls.__mro__ if t.__qualname__.split(".")[-1] != "GraphModuleImpl")
        return super().__new__(type("GraphModuleImpl", (base,), {"__qualname__": "GraphModuleImpl"}))

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        if isinstance(root, torch.nn.Module):
            self.training = getattr(root, "training", True)
            if isinstance(root, _Attributes):
                for name in _all_names(root):
                    _copy_attribute(root, self, name)
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attribute(root, self, node.target)
        elif isinstance(root, dict):
            for target in _targets_in(root, graph):
                _assign_attribute(root[target], self, target)
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.graph = graph
        cls = graph._tracer_cls
        self._tracer_cls = cls if cls and "<locals>" not in cls.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta = {}
        for name in _HOOKS:
            setattr(self, name, [])
        self.shape_env = None

    @property
    def graph(self):
        return self._graph

    @graph.setter
    def graph(self, g):
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    def recompile(self):
        """Makes the graph as it is now what runs. What runs already, runs to its end on the old one."""
        graph = self._graph
        snapshot = graph._snapshot()
        snapshot._codegen = graph._codegen
        snapshot._tracer_cls, snapshot._co_fields = graph._tracer_cls, graph._co_fields
        snapshot._executor, snapshot.guards = None, bind_guards(graph, self)
        self.__dict__["_snapshot"] = snapshot
        type(self).forward = _make_forward(graph)
        for _, child in self.named_children():
            if isinstance(child, GraphModule):
                child.recompile()

    @property
    def code(self):
        """LLVM IR: the generic form of forward, then each specialisation under its heading."""
        executor = self._snapshot._executor
        return generic_code(self._snapshot) + (companion(executor).specialised_code() if executor is not None else "")

    def _run(self, args):
        """Runs the snapshot on one value per parameter of forward; a starred one's is its tuple or dict. It specialises
        itself like a compiled callable, with default options."""
        if find_proxy(args) is not None:
            return Retracer(self, self._snapshot).run_parameters(args)
        executor = self._snapshot._executor  # kept there: a module that wrote to its own dict would look changed
        if executor is None:
            from ..graph_companion import snapshot_executor

            executor = self._snapshot._executor = snapshot_executor(self)
        return executor(*args)

    def _run_with_attributes(self, args):
        """_run, where the default of a parameter is a tensor: the graph has it as an attribute, read at each call."""
        return self._run(tuple(operator.attrgetter(a.target)(self) if isinstance(a, Node) else a for a in args))

    # ---- from and to torch ----

    @staticmethod
    def from_torch(module):
        """The same graph as a torch.fx.GraphModule's or a torch.export.ExportedProgram's, attributes shared."""
        from ..interop import from_torch

        return from_torch(module)

    def to_torch(self):
        """The same graph as a torch.fx.GraphModule, attributes shared."""
        from ..interop import to_torch

        return to_torch(self)

    def to_folder(self, folder, module_name="FxModule"):
        """Writes the module into a folder as a Python package, whose class `module_name` has the graph as torch.fx's
        source: for programs without fxjit, and for reading. save() writes what fxjit reads back."""
        self.to_torch().to_folder(folder, module_name)

    # ---- observers of changes ----

    def _register_replace_node_hook(self, f):
        """f(old=Node, new=name, user=Node) before a user's input is replaced."""
        self._add_hook("_replace_hooks", f)

    def _register_create_node_hook(self, f):
        """f(node) after a node was made."""
        self._add_hook("_create_node_hooks", f)

    def _register_erase_node_hook(self, f):
        """f(node) before a node is erased."""
        self._add_hook("_erase_node_hooks", f)

    def _register_deepcopy_hook(self, f):
        """f(new module) after a deep copy."""
        self._add_hook("_deepcopy_hooks", f)

    def _add_hook(self, table, f):
        if not callable(f):
            raise AssertionError(f"{table[1:-1]} must be a callable.")
        getattr(self, table).append(f)

    def _unregister_replace_node_hook(self, f):
        self._replace_hooks.remove(f)

    def _unregister_create_node_hook(self, f):
        self._create_node_hooks.remove(f)

    def _unregister_erase_node_hook(self, f):
        self._erase_node_hooks.remove(f)

    def _unregister_deepcopy_hook(self, f):
        self._deepcopy_hooks.remove(f)

    @contextlib.contextmanager
    def _set_replace_hook(self, f):
        """A replace hook for the length of a with block."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    # ---- submodules ----

    def add_submodule(self, target, m):
        """Installs `m` at a dotted path, creating modules on the way. False where something else is in the way."""
        *prefix, field = target.split(".")
        owner = self
        for item in prefix:
            child = getattr(owner, item, None)
            if child is None:
                child = torch.nn.Module()
                setattr(owner, item, child)
            if not isinstance(child, torch.nn.Module):
                return False
            owner = child
        owner.add_module(field, m)
        return True

    def delete_submodule(self, target):
        """Deletes the submodule at a dotted path. False if there is none."""
        *prefix, field = target.split(".")
        owner = self
        for item in prefix:
            owner = getattr(owner, item, None)
            if not isinstance(owner, torch.nn.Module):
                return False
        if not isinstance(getattr(owner, field, None), torch.nn.Module):
            return False
        delattr(owner, field)
        return True

    def delete_all_unused_submodules(self):
        """Deletes the submodules that the graph neither calls nor reads, nor parents or children of such."""
        used = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            used.update(itertools.accumulate(node.target.split("."), lambda a, b: f"{a}.{b}"))
            if node.op == "call_module":
                try:
                    called = self.get_submodule(node.target)
                except AttributeError:
                    continue
                used.update(f"{node.target}.{name}" for name, _ in called.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- copies and text ----

    def _deepcopy_init(self):
        return GraphModule.__init__

    def __deepcopy__(self, memo):
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        state = {k: v for k, v in self.__dict__.items() if k != "_snapshot"}
        attributes = _Attributes(copy.deepcopy(state, memo))
        self._deepcopy_init()(new, attributes, attributes.__dict__["_graph"])
        type(new).__name__ = type(self).__name__
        for name in (*_STATE_HOOKS, *_HOOKS):
            if name in self.__dict__:
                setattr(new, name, copy.deepcopy(self.__dict__[name], memo))
        new.meta = copy.deepcopy(self.meta, memo)
        for name, value in new.meta.get("_user_preserved_attributes", {}).items():
            setattr(new, name, value)
        for hook in self._deepcopy_hooks:
            hook(new)
        return new

    def __copy__(self):
        new = GraphModule(self, self.graph)
        new.meta = self.meta
        return new

    def _replicate_for_data_parallel(self):
        new = copy.copy(self)
        new._is_replica = True
        return new

    def print_readable(
        self,
        print_output=True,
        include_stride=False,
        include_device=False,
        colored=False,
        *,
        fast_sympy_print=False,
        expanded_def=False,
        additional_meta=None,
    ):
        """The graph as text, with the dtype and shape of each value where meta has them, and the line of the program
        that it comes from where stack traces were recorded; GraphModules among the children below it.

        include_stride, include_device: of values; colored: with ANSI colours; additional_meta: keys of meta to show;
        fast_sympy_print and expanded_def are about generated Python code and have no effect
        """
        show = {
            "include_stride": include_stride,
            "include_device": include_device,
            "colored": colored,
            "additional_meta": additional_meta,
        }
        text = readable(self, self._get_name(), GraphModule, show)
        if print_output:
            print(text)
        return text

    def __str__(self):
        return f"{super().__str__()}\n\n\n\n{self._graph}\n\n# To see more debug info, please use `graph_module.print_readable()`"


# ---- forward ----


@functools.lru_cache(maxsize=1024)
def _forward_code(parameters, run):
    """The code of a function with these parameters that hands them on to a method; Python itself binds arguments then."""
    names = [p.lstrip("*") for p in parameters]
    receiver = next(n for n in ("self", *(f"self_{i}" for i in range(len(names)))) if n not in names)
    values = "".join(f"{name}, " for name in names)
    source = f"def forward({', '.join((receiver, *parameters))}):\n    return {receiver}.{run}(({values}))\n"
    module = compile(source, "<fxjit forward>", "exec")
    return next(c for c in module.co_consts if isinstance(c, types.CodeType))


def _make_forward(graph):
    empty = inspect.Parameter.empty
    parameters = graph._codegen.parameters(graph)
    reads = any(isinstance(default, Node) for _, default, _ in parameters)
    code = _forward_code(tuple(name for name, _, _ in parameters), "_run_with_attributes" if reads else "_run")
    plain = [(name, default) for name, default, _ in parameters if not name.startswith("*")]
    first = next((i for i, (_, default) in enumerate(plain) if default is not empty), len(plain))
    defaults = tuple(REQUIRED if default is empty else default for _, default in plain[first:])
    forward = types.FunctionType(code, globals(), "forward", defaults or None)
    forward.__annotations__ = {name.lstrip("*"): t for name, _, t in parameters if t is not empty}
    outputs = graph.find_nodes(op="output")
    if outputs and outputs[0].type is not None:
        forward.__annotations__["return"] = outputs[0].type
    return forward


# ---- attributes ----


class _Attributes(torch.nn.Module):
    """A module that consists of the given attributes."""

    def __init__(self, attributes):
        super().__init__()
        self.__dict__ = attributes


def _all_names(root):
    for named in (root.named_children, root.named_buffers, root.named_parameters):
        yield from (name for name, _ in named())


def _targets_in(root, graph):
    targets = []
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module"):
            if node.target not in root:
                raise RuntimeError(
                    f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                )
            targets.append(node.target)
    # foo.bar before foo.bar.baz, which it would wipe out otherwise.
    return sorted(targets, key=lambda target: target.count("."))


def _copy_attribute(source, destination, target):
    *prefix, field = target.split(".")
    for item in prefix:
        child, mine = getattr(source, item), getattr(destination, item, None)
        if child is mine:
            return  # installed whole already
        if mine is None:
            mine = torch.nn.Module()
            setattr(destination, item, mine)
        source, destination = child, mine
    _set_attribute(destination, field, getattr(source, field))


def _assign_attribute(value, destination, target):
    *prefix, field = target.split(".")
    for item in prefix:
        child = getattr(destination, item, None)
        if child is None:
            child = torch.nn.Module()
            setattr(destination, item, child)
        destination = child
    _set_attribute(destination, field, value)


def _set_attribute(module, name, value):
    """Tensors that are no parameters become buffers."""
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)
