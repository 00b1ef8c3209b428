"""Running a graph node by node: the oracle for compiled code, and a base class for transformations."""

import contextlib
import inspect

import torch.fx.traceback as fx_traceback
from torch.hub import tqdm

from .._C import map_aggregate, map_arg
from . import config
from ._guard_check import bind_guards, check_guards
from .graph import Graph
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Executes the nodes of a module's graph. run_node and the six methods named after the opcodes may be overridden.

    module: whose attributes the graph uses
    garbage_collect_values: values are dropped after their last use; with False all stay in `env`
    graph: runs this one instead of module.graph
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = graph if graph is not None else module.graph
        self.env = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        if garbage_collect_values:
            self.user_to_last_uses = last_uses(self.graph)

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """The value of the output node. Nodes that `initial_env` maps to a value are not run, and take no argument.

        Errors: RuntimeError for an argument too many or too few; what running a node raises, with the node in its text.
        """
        self.env = initial_env if initial_env is not None else {}
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        if initial_env is None and type(self).placeholder is Interpreter.placeholder:
            self._refuse_extra(args)
        self.args_iter = iter(args)
        unchecked = bind_guards(self.graph, self.module)
        for node in self.graph.nodes if config.disable_progress else self._with_progress():
            if node in self.env:
                continue
            if unchecked and node.op != "placeholder":
                unchecked = self._check(unchecked)
            try:
                self.env[node] = self.run_node(node)
            except Exception as e:
                if self.extra_traceback:
                    self._explain(node, e)
                raise
            if self.garbage_collect_values:
                for dead in self.user_to_last_uses.get(node, ()):
                    self.env.pop(dead, None)
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value

    def _with_progress(self):
        """The nodes, and on stderr how many of them have run."""
        names = str(list(self.graph.nodes)) if config.verbose_progress else ""
        with tqdm(total=len(self.graph.nodes), desc=f"{self.name}: {names}") as bar:
            for node in self.graph.nodes:
                bar.update(1)
                yield node

    def _refuse_extra(self, args):
        # torch.fx drops arguments that no placeholder takes: a caller who miscounted does not learn of it.
        names = [n.target for n in self.graph.find_nodes(op="placeholder")]
        if len(args) > len(names) and not any(name.startswith("*") for name in names):
            raise RuntimeError(
                f"Interpreter.run expected {len(names)} arguments for placeholders but received {len(args)} "
                "(extra arguments)"
            )

    def _check(self, guards):
        """Checks the guards of the graph once all its inputs have values; returns those that are to be checked yet."""
        inputs = self.graph.find_nodes(op="placeholder")
        if not all(n in self.env for n in inputs):
            return guards
        check_guards(guards, [self.env[n] for n in inputs], self.module)
        return ()

    def _explain(self, node, error):
        note = f"While executing {node.format_node()}"
        text = f"{error.args[0]}\n\n{note}" if error.args else note
        error.args = (f"{text}\nOriginal traceback:\n{node.stack_trace}", *error.args[1:])
        if isinstance(error, KeyError):  # its str() would show the text quoted
            raise RuntimeError(*error.args) from error

    def boxed_run(self, args_list):
        """run on a list of one value per placeholder, which is emptied: values die after their last use."""
        placeholders = self.graph.find_nodes(op="placeholder")
        if len(args_list) != len(placeholders):
            detail = "extra arguments" if len(args_list) > len(placeholders) else "missing arguments"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(placeholders)} arguments for placeholders but received "
                f"{len(args_list)} ({detail})"
            )
        env = dict(zip(placeholders, args_list))
        args_list.clear()
        return self.run(initial_env=env)

    @contextlib.contextmanager
    def _set_current_node(self, node):
        if not fx_traceback.has_preserved_node_meta():
            yield
            return
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n):
        """The value of one node."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        if target.startswith("*"):
            return list(self.args_iter)  # what is left
        try:
            return next(self.args_iter)
        except StopIteration as end:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from end

    def get_attr(self, target, args, kwargs):
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target, args, kwargs):
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        return args[0]

    def fetch_attr(self, target):
        """The attribute of the module at a dotted path."""
        value, atoms = self.module, target.split(".")
        for i, atom in enumerate(atoms):
            if not hasattr(value, atom):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(atoms[: i + 1])}")
            value = getattr(value, atom)
        return value

    def fetch_args_kwargs_from_env(self, n):
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """`args` with nodes replaced by their values."""

        def load(node):
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, load)


def last_uses(graph):
    """For each node, the nodes whose values nobody needs after it."""
    seen, out = set(), {}
    for node in reversed(graph.nodes):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                out.setdefault(node, []).append(used)
    return out


class Transformer(Interpreter):
    """Runs a module's graph on proxies and builds a new module; overridden methods change what is recorded."""

    def __init__(self, module):
        from ._symbolic_trace import Tracer

        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.new_graph.guards = module.graph.guards

        class TransformerTracer(Tracer):
            def __init__(self, graph):
                super().__init__()
                self.graph = graph
                self.tensor_attrs = {}

            def is_leaf_module(self, _, __):
                return True

        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def _check(self, guards):
        return ()  # inputs are proxies; the new graph has the same guards

    def placeholder(self, target, args, kwargs):
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        submodule = self.fetch_attr(target)
        return self.tracer.call_module(submodule, submodule.forward, args, kwargs)

    def call_function(self, target, args, kwargs):
        # Recorded rather than called: what was wrapped stays so.
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self):
        """The new module."""
        from .graph_module import GraphModule

        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            stripped = map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            output = self.new_graph.output(stripped)
            output.meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)
