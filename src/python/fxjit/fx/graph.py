"""fxjit.fx.Graph: the data and the algorithms are in C++; here is what deals with Python objects."""

import copy
import inspect
import warnings

import torch
from torch.fx.graph import PythonCode  # what Graph.python_code returns

from .. import _C

__all__ = ["CodeGen", "Graph", "PythonCode"]


class _LeftOut:
    """A name of torch.fx's class that ours has no use for: the AttributeError says what to do instead."""

    def __init__(self, advice):
        self.advice = advice

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        raise AttributeError(f"fxjit.fx's {owner.__name__} has no {self.name}: {self.advice}")


_NO_SOURCE = "what runs is machine code, for which no Python source is generated. "


class CodeGen:
    """The calling convention of a graph: how the caller's arguments become values of the placeholders, and back."""

    gen_fn_def = _LeftOut(_NO_SOURCE + "Override parameters() to say what forward takes, process_inputs() to unpack it")
    generate_output = _LeftOut(_NO_SOURCE + "Override process_outputs() to say what forward returns")
    additional_globals = _LeftOut(_NO_SOURCE + "process_inputs() and process_outputs() see the names of their own module")

    def process_inputs(self, *args):
        return args

    def process_outputs(self, outputs):
        return outputs

    def parameters(self, graph):
        """(name, default or inspect.Parameter.empty, annotation) of each parameter of forward, in order."""
        empty = inspect.Parameter.empty
        return [
            (n.target, n.args[0] if n.args else empty, empty if n.type is None else n.type)
            for n in graph.find_nodes(op="placeholder")
        ]


_SOURCE_HOOKS = ("gen_fn_def", "generate_output", "additional_globals")


class PyTreeInfo:
    """orig_args: names of forward's parameters, without a module's `self`; in_spec, out_spec: how they and the result are
    flattened."""

    def __init__(self, orig_args, in_spec, out_spec):
        self.orig_args, self.in_spec, self.out_spec = orig_args, in_spec, out_spec


class PyTreeCodeGen(CodeGen):
    """One placeholder per leaf of the arguments."""

    def __init__(self, pytree_info):
        self.pytree_info = pytree_info

    def process_inputs(self, *args):
        """The leaves of the arguments, as far as they are given: defaults may follow."""
        wanted = self.pytree_info.in_spec.children()
        values = []
        for arg, spec in zip(args, wanted):
            leaves, found = torch.utils._pytree.tree_flatten(arg)
            values += leaves if found == spec else torch.fx._pytree.tree_flatten_spec(arg, spec)
        return [*values, *args[len(wanted) :]]  # those of *args

    def process_outputs(self, outputs):
        if self.pytree_info.out_spec is None:
            return outputs
        if not isinstance(outputs, (list, tuple)):
            outputs = [outputs]
        return torch.utils._pytree.tree_unflatten(outputs, self.pytree_info.out_spec)

    def parameters(self, graph):
        empty = inspect.Parameter.empty
        placeholders = iter(graph.find_nodes(op="placeholder"))
        found = []
        for name, spec in zip(self.pytree_info.orig_args, self.pytree_info.in_spec.children()):
            nodes = [n for _, n in zip(range(spec.num_leaves), placeholders)]
            default = nodes[0].args[0] if spec.is_leaf() and nodes and nodes[0].args else empty
            found.append((name, default, empty))
        return found


class Graph(_C.Graph):
    """A program as a list of nodes in the order of execution.

    guards: conditions on the inputs under which the graph is the traced program; see Tracer.trace. They are checked
    wherever the graph is run and go with copies of it, edits or not: who knows better sets `guards = []`, which takes
    effect at recompile().
    """

    guards = ()
    on_generate_code = _LeftOut(
        _NO_SOURCE + "Edit the graph, or subclass Interpreter to act on each node; gm.to_torch().graph has it"
    )

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields = {}

    def placeholder(self, name, type_expr=None, default_value=inspect.Signature.empty):
        """An input of the function that the graph is. A default of None is not the same as no default."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """Reads an attribute of the owning module."""
        if self.owning_module and not _attribute_exists(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the "
                "necessary Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """Calls a submodule of the owning module."""
        if self.owning_module and self.owning_module.get_submodule(module_name) is None:
            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """Calls a method of args[0]."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """Calls a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result, type_expr=None):
        """The value that the graph returns: any structure of nodes and constants."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def process_inputs(self, *args):
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        return self._codegen.process_outputs(out)

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copies the nodes of `g` but its output to the insertion point, and returns what its output is here, together
        with that output node if `return_output_node`. val_map: a dict from nodes to what stands for them, which is
        filled. Into a graph without inputs the guards of `g` come along with its inputs."""
        guards = getattr(g, "guards", ())
        if guards and not self.find_nodes(op="placeholder"):
            if not val_map or not any(n in val_map for n in g.find_nodes(op="placeholder")):
                self.guards = [*self.guards, *guards]
        return super().graph_copy(g, val_map, return_output_node)

    def set_codegen(self, codegen):
        """Takes a calling convention. NotImplementedError for one that generates source, as those for torch.fx do."""
        for name in _SOURCE_HOOKS:
            if hasattr(codegen, name):
                raise NotImplementedError(
                    f"{type(codegen).__name__}.{name} would not be called: {vars(CodeGen)[name].advice}"
                )
        self._codegen = codegen

    def python_code(
        self,
        root_module,
        *,
        verbose=False,
        include_stride=False,
        include_device=False,
        colored=False,
        expanded_def=False,
        record_func=False,
        additional_meta=None,
    ):
        """The graph as Python source, which torch.fx writes of it: a PythonCode with `src`, `globals` and the rest. It
        is for reading and for programs that execute it; it is not what runs here, and checks no guards."""
        from ..interop import to_torch_graph

        return to_torch_graph(self).python_code(
            root_module,
            verbose=verbose,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            record_func=record_func,
            additional_meta=additional_meta,
        )

    def eliminate_dead_code(self, is_impure_node=None):
        """Removes nodes that nobody uses and that have no effect; returns whether there were any."""
        changed = self._eliminate_dead_code(is_impure_node)
        if self.owning_module is not None:
            from .graph_module import GraphModule

            read = {n.target for n in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                if name in read and isinstance(child, GraphModule):
                    changed |= child.graph.eliminate_dead_code()
                    child.recompile()
        return changed

    def print_tabular(self):
        """Prints opcode, name, target, args and kwargs of each node as a table."""
        print(self._format_tabular())

    def __deepcopy__(self, memo=None):
        # Nodes are keys in a memo that has entries; an empty one stays empty, as torch.fx leaves it.
        new = type(self)(tracer_cls=self._tracer_cls)
        result = new.graph_copy(self, memo or None, return_output_node=True)
        new._codegen = copy.deepcopy(self._codegen)
        if result is not None:
            value, old = result
            node = new.output(value, type_expr=old.type)
            node.meta = copy.copy(old.meta)
            if memo:
                memo[old] = node
        return new


def _attribute_exists(module, qualified_name):
    path, _, name = qualified_name.rpartition(".")
    try:
        owner = module.get_submodule(path)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {path}!")
        return False
    found = getattr(owner, name, None)
    return isinstance(found, (torch.nn.Module, torch.nn.Parameter)) or (found is not None and name in owner._buffers)


