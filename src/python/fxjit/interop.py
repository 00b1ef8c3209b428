"""GraphModules from and to torch.fx, and from torch.export.

Graphs are translated node by node: opcodes, targets, arguments, names, annotations and meta stay, attributes are
shared, nested GraphModules are translated as well. No Python code is generated or read.
"""

from __future__ import annotations

import inspect

import torch
from torch.utils import _pytree as pytree

from . import fx
from .fx._guard_check import bind_guards, check_guards
from .fx.graph import CodeGen, PyTreeCodeGen, PyTreeInfo

__all__ = ["from_exported", "from_torch", "to_torch"]


def from_torch(module) -> fx.GraphModule:
    """A torch.fx.GraphModule, or a torch.export.ExportedProgram (see from_exported), as a GraphModule of fxjit.fx."""
    if isinstance(module, torch.export.ExportedProgram):
        return from_exported(module)
    if not isinstance(module, torch.fx.GraphModule):
        raise TypeError(
            f"from_torch takes a torch.fx.GraphModule or an ExportedProgram, not {torch.typename(module)}; "
            "fxjit.fx.symbolic_trace traces other modules"
        )
    return _translate_module(module, fx, {})


def to_torch(module: fx.GraphModule) -> torch.fx.GraphModule:
    """A GraphModule of fxjit.fx as one of torch.fx."""
    if not isinstance(module, fx.GraphModule):
        raise TypeError(f"to_torch takes a GraphModule of fxjit.fx, not {torch.typename(module)}")
    return _translate_module(module, torch.fx, {})


def to_torch_graph(graph: fx.Graph) -> torch.fx.Graph:
    """A graph alone, without its guards; what its nodes name is not translated."""
    return _translate_graph(graph, torch.fx)


def _source_of(kind):
    return torch.fx if kind is fx else fx


def _translate_module(module, kind, memo):
    """`module` as a GraphModule of `kind` (fxjit.fx or torch.fx). One that occurs twice is translated once."""
    if id(module) in memo:
        return memo[id(module)]
    check = _trace_guards_of(module) if kind is fx else None
    graph = _translate_graph(module.graph, kind, skipped=_with_attributes(check))
    new = memo[id(module)] = kind.GraphModule(module, graph, type(module).__name__)
    for target in dict.fromkeys(n.target for n in module.graph.nodes if n.op in ("call_module", "get_attr")):
        child = _at(module, target)
        if isinstance(child, _source_of(kind).GraphModule):
            _install(module, new, target, _translate_module(child, kind, memo))
    _copy_persistence(module, new)
    new.meta = dict(module.meta)
    for name in module.meta.get("_user_preserved_attributes", ()):
        setattr(new, name, module.meta["_user_preserved_attributes"][name])
    if check is not None:
        graph.guards = module.get_submodule(check.target).guards
        new.recompile()
    elif kind is torch.fx:
        _call_guards(new, bind_guards(module.graph, module))
    return new


def _at(module, path):
    value = module
    for name in path.split(".") if path else ():
        value = getattr(value, name)
    return value


def _copy_persistence(source, new):
    """Buffers that state_dict() leaves out in the source are left out in the new module."""
    modules = dict(source.named_modules())
    for path, module in new.named_modules():
        if path in modules and module is not modules[path]:
            module._non_persistent_buffers_set |= modules[path]._non_persistent_buffers_set & set(module._buffers)


def _install(source, new, target, translated):
    """Puts a translated child in its place, unless the module that holds it is shared with the source."""
    *path, name = target.split(".")
    for item in path:
        source, new = getattr(source, item), getattr(new, item)
    if source is not new:
        setattr(new, name, translated)


def _translate_graph(graph, kind, nodes=None, skipped=()):
    """`nodes` receives old node -> new node."""
    nodes = {} if nodes is None else nodes
    new_graph = kind.Graph(tracer_cls=None)
    for n in graph.nodes:
        if n not in skipped:
            _copy_node(new_graph, n, nodes)
    new_graph._codegen = _translate_codegen(graph._codegen, kind)
    return new_graph


def _lower(a, nodes):
    map_arg = fx.map_arg if isinstance(next(iter(nodes), None), fx.Node) else torch.fx.map_arg
    return map_arg(a, nodes.__getitem__) if nodes else a


def _copy_node(graph, n, nodes):
    new = graph.create_node(n.op, n.target, _lower(n.args, nodes), _lower(n.kwargs, nodes), n.name, n.type)
    if new.name != n.name:  # a name that create_node would not give, set by hand
        new.name = n.name
    new.meta.update((key, _translate_meta(value, nodes)) for key, value in n.meta.items())
    nodes[n] = new
    return new


def _translate_meta(value, nodes):
    """Nodes that meta refers to, directly or in a list or tuple, become those of the new graph."""
    if isinstance(value, (fx.Node, torch.fx.Node)):
        return nodes.get(value, value)
    if type(value) in (list, tuple) and any(isinstance(v, (fx.Node, torch.fx.Node)) for v in value):
        return type(value)(nodes.get(v, v) if isinstance(v, (fx.Node, torch.fx.Node)) else v for v in value)
    return value


def _translate_codegen(codegen, kind):
    """The calling convention. Of torch.fx's subclasses only the pytree ones say anything about the graph's meaning."""
    info = getattr(codegen, "pytree_info", None)
    if info is None:
        return CodeGen() if kind is fx else torch.fx.graph.CodeGen()
    names, spec, out = list(info.orig_args), info.in_spec, info.out_spec
    if kind is torch.fx:
        if not isinstance(codegen, ExportCodeGen):  # torch.fx counts `self`
            names, spec = ["self", *names], _tuple_spec(pytree.tree_flatten(0)[1], *spec.children())
        return torch.fx.graph._PyTreeCodeGen(torch.fx.graph._PyTreeInfo(names, spec, out))
    if names[:1] == ["self"]:
        names, spec = names[1:], _tuple_spec(*spec.children()[1:])
    parts = spec.children()
    if spec.type is tuple and len(parts) == 2 and parts[0].type is tuple and parts[1].type is dict and "self" not in info.orig_args:
        return ExportCodeGen(PyTreeInfo(names, spec, out))  # a tuple of arguments and a dict of keywords, to torch.fx too
    return PyTreeCodeGen(PyTreeInfo(names, spec, out))


def _tuple_spec(*children):
    leaf = pytree.tree_flatten(0)[1]
    trees = [pytree.tree_unflatten([0] * child.num_leaves, child) if child != leaf else 0 for child in children]
    return pytree.tree_flatten(tuple(trees))[1]


class TraceGuards(torch.nn.Module):
    """forward(*values): GuardError unless the guards hold. values: those of the placeholders, then of `attributes`."""

    _is_impure = True  # nobody uses its result

    def __init__(self, guards, inputs, attributes):
        super().__init__()
        self.guards = guards
        places = {path: (len(inputs) + i, path) for i, path in enumerate(attributes)}
        self._bound = [g.bound_to({name: (i, name) for i, name in enumerate(inputs)}, places) for g in guards]

    def forward(self, *values):
        check_guards(self._bound, values, None)


def _call_guards(module, guards):
    """Makes a torch.fx.GraphModule check guards, by a call in its graph: torch.fx knows of none."""
    if not guards:
        return
    graph, name = module.graph, "_trace_guards"
    while hasattr(module, name):
        name += "_"
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    attributes = list(dict.fromkeys(path for g in guards for path in g.attributes()))
    module.add_module(name, TraceGuards(guards, [n.target.lstrip("*") for n in inputs], attributes))
    with graph.inserting_before(next(n for n in graph.nodes if n.op != "placeholder")):
        graph.call_module(name, (*inputs, *map(graph.get_attr, attributes)))
    module.recompile()


def _trace_guards_of(module):
    """The node that calls what _call_guards has put there, or None."""
    calls = (n for n in module.graph.nodes if n.op == "call_module")
    return next((n for n in calls if isinstance(_at(module, n.target), TraceGuards)), None)


def _with_attributes(check):
    """The node, and the attributes that only it reads."""
    return () if check is None else {check, *(i for i in check.all_input_nodes if i.op == "get_attr" and len(i.users) == 1)}


# ---- torch.export ----


def from_exported(program: torch.export.ExportedProgram) -> fx.GraphModule:
    """An exported program as a GraphModule that is called like the module it was exported from.

    Parameters, buffers and constants that export lifted to inputs are attributes again, read by get_attr nodes. What
    the signature says is mutated (buffers, parameters, arguments) is written by aten.copy_ before the output. Arguments
    are checked against the shapes, dtypes and constants the program was exported with: AssertionError. Tokens of
    effects are not supported (NotImplementedError).
    """
    signature, source = program.graph_signature, program.graph_module
    root, graph, nodes = _exported_root(program), fx.Graph(), {}
    specs = {spec.arg.name: spec for spec in signature.input_specs}
    users = []
    for n in source.graph.nodes:
        spec = specs.get(n.name) if n.op == "placeholder" else None
        if n.op == "placeholder" and spec is None:
            raise NotImplementedError(f"input {n.name} of the exported program is not in its signature")
        if spec is not None and spec.kind.name == "TOKEN":
            raise NotImplementedError(f"the exported program orders effects by the token {n.name}; export it without")
        if spec is not None and spec.target is not None:
            nodes[n] = graph.create_node("get_attr", spec.target, name=n.name, type_expr=n.type)
            nodes[n].meta.update(n.meta)
        elif n.op == "output":
            _add_guards(root, graph, users, nodes, signature)
            _exported_output(program, graph, n, nodes)
        else:
            _copy_node(graph, n, nodes)
            if n.op == "placeholder":
                users.append(n)
    graph._codegen = _exported_codegen(program, users)
    graph.lint()
    new = fx.GraphModule(root, graph, type(source).__name__)
    _copy_persistence(root, new)
    memo = {}
    for n in graph.nodes:
        child = _at(root, n.target) if n.op == "get_attr" else None
        if isinstance(child, torch.fx.GraphModule):
            _install(root, new, n.target, _translate_module(child, fx, memo))
    return new


def _exported_root(program):
    """A module of what the program's get_attr nodes are going to name: the program's own objects."""
    root = torch.nn.Module()
    tables = {}
    for spec in program.graph_signature.input_specs:
        if spec.target is None:
            continue
        value = program.state_dict.get(spec.target)
        if value is None:
            value = program.constants[spec.target]
        tables[spec.target] = (value, bool(spec.persistent))
    for n in program.graph_module.graph.nodes:
        if n.op == "get_attr" and n.target not in tables:
            tables[n.target] = (_at(program.graph_module, n.target), False)
    for target in sorted(tables, key=lambda t: t.count(".")):
        value, persistent = tables[target]
        *path, name = target.split(".")
        owner = root
        for item in path:
            if not hasattr(owner, item):
                setattr(owner, item, torch.nn.Module())
            owner = getattr(owner, item)
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
            owner.register_buffer(name, value, persistent=persistent)
        else:
            setattr(owner, name, value)
    return root


def _exported_output(program, graph, output, nodes):
    """Writes what is mutated, then the user's outputs. An output that is a constant has no node: its value stays."""
    results, copied = [], {}
    inputs = {n.name: n for n in graph.nodes if n.op == "placeholder"}
    attributes = {n.target: n for n in graph.nodes if n.op == "get_attr"}
    values = _lower(output.args[0], nodes)
    for spec, value in zip(program.graph_signature.output_specs, values):
        kind = spec.kind.name
        if kind == "TOKEN":
            raise NotImplementedError("the exported program orders effects by tokens; export it without")
        if kind.endswith("_MUTATION"):
            destination = inputs[spec.target] if kind == "USER_INPUT_MUTATION" else attributes[spec.target]
            copied[value] = graph.call_function(torch.ops.aten.copy_.default, (destination, value))
        else:
            results.append(value)
    results = [copied.get(v, v) if isinstance(v, fx.Node) else v for v in results]
    structure = program.call_spec.out_spec
    value = tuple(results)
    if structure is not None and structure.num_leaves == len(results):
        value = pytree.tree_unflatten(results, structure)
    new = graph.output(value)
    new.meta.update(output.meta)


class ExportCodeGen(PyTreeCodeGen):
    """forward of an exported program: named arguments of any structure, whose leaves are the placeholders; in_spec is that
    of a tuple of arguments and a dict of keywords. The output node holds the result's structure itself."""

    def parameters(self, graph):
        empty = inspect.Parameter.empty
        return [(name, empty, empty) for name in self.pytree_info.orig_args]

    def process_inputs(self, *args):
        positional, keywords = self.pytree_info.in_spec.children()
        count = positional.num_children
        return super().process_inputs(args[:count], dict(zip(keywords.context, args[count:])))


def _exported_codegen(program, users):
    in_spec = program.call_spec.in_spec
    names = program.module_call_graph[0].signature.forward_arg_names if program.module_call_graph else None
    if in_spec is None or names is None:
        return CodeGen()
    positional, keywords = in_spec.children()
    names = [*names[: positional.num_children], *keywords.context]
    if len(names) == in_spec.num_leaves and names == [n.target for n in users]:
        return CodeGen()  # one placeholder per parameter: the plain convention
    return ExportCodeGen(PyTreeInfo(names, in_spec, None))


def _add_guards(root, graph, users, nodes, signature):
    """A call that checks the arguments, before anything is computed."""
    if not users:
        return
    constants = {s.arg.name: s.arg.value for s in signature.input_specs if hasattr(s.arg, "value")}
    root._guards_fn = InputGuards([_expectation(n, constants) for n in users])
    with graph.inserting_after(nodes[users[-1]]):
        graph.create_node("call_module", "_guards_fn", tuple(nodes[n] for n in users))


def _expectation(n, constants):
    value = n.meta.get("val")
    if isinstance(value, torch.Tensor):
        return n.name, value.dtype, tuple(d if isinstance(d, int) else str(d) for d in value.shape)
    return n.name, None, constants.get(n.name)


class InputGuards(torch.nn.Module):
    """forward(*values): AssertionError unless each is what the program was exported for.

    expected: (name, dtype, shape) of each tensor; (name, None, constant or None) of other inputs. Dimensions that are
    text are symbols: any size, the same one wherever the symbol occurs.
    """

    _is_impure = True
    reads_sizes_only = True  # its answer depends on shapes and dtypes alone: a record of a program may leave it out

    def __init__(self, expected):
        super().__init__()
        self.expected = expected

    def forward(self, *values):
        sizes = {}
        for (name, dtype, shape), value in zip(self.expected, values):
            if dtype is None:
                if shape is not None and value != shape:
                    raise AssertionError(f"Guard failed: {name} == {shape!r} (a constant of the exported program)")
                continue
            found = value if isinstance(value, torch.Tensor) else None
            if found is None:
                raise AssertionError(f"Guard failed: {name} is a tensor, got {type(value).__name__}")
            if found.dtype != dtype:
                raise AssertionError(f"Guard failed: {name}.dtype == {dtype}, got {found.dtype}")
            if found.dim() != len(shape):
                raise AssertionError(f"Guard failed: {name}.dim() == {len(shape)}, got {found.dim()}")
            for i, (wanted, size) in enumerate(zip(shape, found.shape)):
                wanted = sizes.setdefault(wanted, size) if isinstance(wanted, str) else wanted
                if size != wanted:
                    raise AssertionError(f"Guard failed: {name}.size()[{i}] == {wanted}, got {size}")
