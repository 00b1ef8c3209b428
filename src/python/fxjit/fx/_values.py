"""What is known of the values of a graph that is being traced with example inputs: tensors without data (torch's fake
tensors), sizes, dtypes, devices. A value is found when something asks for it, so a program that looks at nothing costs
nothing."""

import builtins
import contextlib
import logging
import sys

import torch
import torch.utils._pytree as pytree

from .._C import load_values
from ._paths import lookup

_isinstance = builtins.isinstance  # a trace replaces it
_FAKE_LOG = logging.getLogger("torch._subclasses.fake_tensor")

# Methods that change the metadata of their tensor: from then on nodes are evaluated in their order.
_METADATA_MUTATORS = frozenset(
    "t_ transpose_ unsqueeze_ squeeze_ swapaxes_ swapdims_ resize_ resize_as_ set_ as_strided_ detach_ requires_grad_ "
    "rename_".split()
)

# Methods and properties of a tensor that say something about it and touch no data: an input is asked itself.
METADATA = frozenset(
    "shape size dim ndim ndimension numel nelement dtype device layout stride is_contiguous requires_grad is_cuda is_cpu "
    "is_meta is_sparse is_floating_point is_complex element_size itemsize is_leaf is_quantized is_conj is_neg "
    "is_signed get_device names is_mkldnn is_nested is_inference".split()
)


class Unknown:
    """A value that is not known while tracing; the reason ends a sentence."""

    def __init__(self, reason):
        self.reason = reason


class Values:
    """Values of the nodes of `tracer`'s graph.

    examples: by placeholder, what the caller gave. Tensors among them are only asked for their metadata.
    """

    def __init__(self, tracer):
        self.tracer = tracer
        self.examples = {}
        self.evaluating = False  # modules and functions run on fake tensors: nothing is to be recorded
        self._values = {}
        self._fakes = {}  # get_attr target → fake tensor: one for all nodes that read it
        self._mode = None
        self.reshaped = False  # an operator changed the metadata of a tensor in place
        self._scanned = None  # the last node that was looked at for a change of metadata

    def of(self, node):
        """The value of a node: an object without Proxies, its tensors fake; or an Unknown."""
        if self._has_new_mutator():
            self.reshaped = True
            for n in self.tracer.graph.nodes:
                self._find(n)
        if node not in self._values:
            for n in self._unknown_ancestors(node):
                self._find(n)
        return self._values[node]

    def metadata(self, node, name):
        """The value of `name` of an input, without making a fake tensor; None where that is not possible."""
        example = self.examples.get(node)
        plain = name in METADATA and node not in self._values and type(example) in (torch.Tensor, torch.nn.Parameter)
        return example if plain else None

    def _tensor(self, node):
        example = self.metadata(node, "dim")
        return self.of(node) if example is None else example

    def module(self, node):
        """The module that a call_module node calls."""
        return lookup(self.tracer.root, node.target)

    def original(self, node):
        """What an input or attribute is before the graph runs."""
        if node.op == "placeholder":
            return self.examples.get(node)
        return lookup(self.tracer.root, node.target)

    def is_tensor(self, node):
        return isinstance(self._tensor(node), torch.Tensor)

    def is_host_operation(self, node):
        """Whether the node's value is known, and is no tensor or structure of tensors."""
        value = self.of(node)
        return not isinstance(value, Unknown) and not any(
            isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value)
        )

    def rank(self, node):
        return self._tensor(node).dim()

    def size(self, node, d):
        return self._tensor(node).size(d)

    # ---- evaluation ----

    def _has_new_mutator(self):
        node = self._scanned
        if node is None or node._erased:
            node = self.tracer.graph._root
        found = False
        while node.next.op != "root":
            node = node.next
            found |= node.op == "call_method" and node.target in _METADATA_MUTATORS
        self._scanned = None if node.op == "root" else node
        return found

    def _unknown_ancestors(self, node):
        """The node and those of its ancestors that have no value yet, in an order in which they can be evaluated."""
        order, stack = [], [(node, False)]
        seen = set()
        while stack:
            n, done = stack.pop()
            if done:
                order.append(n)
            elif n not in seen and n not in self._values:
                seen.add(n)
                stack.append((n, True))
                if not self._reads_metadata(n):
                    stack.extend((i, False) for i in n.all_input_nodes)
        return order

    def _reads_metadata(self, node):
        """Whether the node asks an input tensor for metadata, for which no other value has to be known."""
        name = None
        if node.op == "call_method":
            name = node.target
        elif node.op == "call_function" and node.target is getattr and len(node.args) > 1:
            name = node.args[1]
        return (
            len(node.all_input_nodes) == 1
            and node.args[0] is node.all_input_nodes[0]
            and self.metadata(node.args[0], name) is not None
        )

    def _find(self, node):
        if node in self._values:
            return
        try:
            with self._quietly():
                self._values[node] = self._evaluate(node)
        except Exception as e:  # noqa: BLE001 - whatever an operator has to say about its arguments
            self._values[node] = Unknown(_reason(node, e))

    def _evaluate(self, node):
        if node.op == "placeholder":
            if node not in self.examples:
                return Unknown(f"no example was given for the input '{node.target}'")
            return pytree.tree_map(self._fake, self.examples[node])
        if node.op == "get_attr":
            if node.target not in self._fakes:
                self._fakes[node.target] = self._fake(lookup(self.tracer.root, node.target))
            return self._fakes[node.target]
        if node.op == "output":
            return Unknown("it is the output")
        if self._reads_metadata(node):
            args, kwargs = (self.examples[node.args[0]], *node.args[1:]), dict(node.kwargs)
            return self._call(node, args, kwargs)
        for i in node.all_input_nodes:
            if isinstance(self._values[i], Unknown):
                return self._values[i]
        args, kwargs = load_values(node.args, self._values), load_values(node.kwargs, self._values)
        if not self.tracer._may_evaluate(node):
            return Unknown(f"'{node.name}' calls Python code that may have effects")
        with self._fake_mode():
            return self._call(node, args, kwargs)

    def _call(self, node, args, kwargs):
        if node.op == "call_function":
            return node.target(*args, **kwargs)
        if node.op == "call_method":
            return getattr(args[0], node.target)(*args[1:], **kwargs)
        module = self.module(node)
        state = {name: self._fake(t) for name, t in (*module.named_parameters(), *module.named_buffers())}
        return torch.func.functional_call(module, state, args, kwargs)

    def _fake(self, leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return self._fake_mode().from_tensor(leaf)

    def _fake_mode(self):
        if self._mode is None:
            from torch._subclasses.fake_tensor import FakeTensorMode

            self._mode = FakeTensorMode()
        return self._mode

    @contextlib.contextmanager
    def _quietly(self):
        """Nothing that runs here is the traced program: it is neither recorded nor watched, and its errors are not logged."""
        before, profile, type_test = self.evaluating, sys.getprofile(), builtins.isinstance
        silent, _FAKE_LOG.disabled = _FAKE_LOG.disabled, True
        self.evaluating = True
        sys.setprofile(None)
        builtins.isinstance = _isinstance
        try:
            with torch._C.DisableTorchFunction() if _function_mode_enabled() else contextlib.nullcontext():
                yield
        finally:
            self.evaluating, _FAKE_LOG.disabled = before, silent
            builtins.isinstance = type_test
            sys.setprofile(profile)


def _function_mode_enabled():
    return torch._C._is_torch_function_mode_enabled()


def _reason(node, e):
    text = str(e).strip().splitlines()[0] if str(e).strip() else ""
    if type(e).__name__ in ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException"):
        return f"'{node.name}' depends on data"
    return f"evaluating '{node.name}' without data raised {type(e).__name__}: {text}"
