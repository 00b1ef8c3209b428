"""The programs of the corpus, by family: models of torchvision, timm and transformers, torch.nn.functional, and the
sample inputs of torch's own operator and module databases."""

import contextlib
import functools
import importlib
import inspect
import itertools

import torch
from compare import Case, Skip

SAMPLES = 3  # of each operator and module


def package(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Skip(f"{name} is not installed ({error}): tools/corpus --setup installs it") from None


class StorageOnMeta(torch.overrides.TorchFunctionMode):
    """What layers allocate for their parameters has no data; other tensors do."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.empty and kwargs.get("device") is None:
            kwargs = kwargs | {"device": "meta"}
        return func(*args, **kwargs)


def model_of(make):
    """A model without weights: nothing is downloaded, and hardly more than shapes is computed."""
    try:
        with torch.device("meta"):
            return make().eval()
    except (NotImplementedError, RuntimeError):  # its constructor computes with values
        with StorageOnMeta():
            return make().eval()


# ---- models ----


def torchvision_cases(everything):
    models = package("torchvision.models")
    for name in models.list_models():
        options = {"weights": None}
        if "weights_backbone" in inspect.signature(models.get_model_builder(name)).parameters:
            options["weights_backbone"] = None

        def make(name=name, options=options):
            return model_of(lambda: models.get_model(name, **options)), None

        yield Case(name, make)


def timm_cases(everything):
    timm = package("timm")
    for module in timm.list_modules():
        names = [n for n in timm.list_models(module=module) if timm.models._registry._model_to_module[n] == module]
        for name in names if everything else names[:2]:
            yield Case(name, lambda name=name: (model_of(lambda: timm.create_model(name, pretrained=False)), None))


def transformers_cases(everything):
    transformers = package("transformers")
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    for key in sorted(auto.MODEL_MAPPING_NAMES):
        yield Case(key, functools.partial(make_transformer, transformers, key))


def make_transformer(transformers, key):
    """The bare model of an architecture with two layers."""
    config = transformers.AutoConfig.for_model(key)
    for name in ("num_hidden_layers", "n_layer", "num_layers", "encoder_layers", "decoder_layers", "n_layers"):
        if isinstance(getattr(config, name, None), int):
            with contextlib.suppress(Exception):
                setattr(config, name, 2)
    return FirstArgument(model_of(lambda: transformers.AutoModel.from_config(config))), None


class FirstArgument(torch.nn.Module):
    """A model as a function of its first argument; the results are tuples, as they have to be."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        parameters = inspect.signature(model.forward).parameters
        self.options = {name: False for name in ("use_cache",) if name in parameters}

    def forward(self, x):
        return self.model(x, **self.options, return_dict=False)


# ---- torch.nn.functional, traced into the bodies ----


@contextlib.contextmanager
def bodies_only():
    """torch.nn.functional hands no call to __torch_function__: a trace goes into the bodies."""
    names = ["has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"]
    saved = {name: getattr(torch.nn.functional, name) for name in names}
    try:
        for name in names:
            setattr(torch.nn.functional, name, lambda *_: False)
        yield
    finally:
        for name, function in saved.items():
            setattr(torch.nn.functional, name, function)


def functional_cases(everything):
    for name in sorted(dir(torch.nn.functional)):
        fn = getattr(torch.nn.functional, name)
        if name.startswith(("_", "has_torch_function")) or not name.islower() or not callable(fn):
            continue
        with contextlib.suppress(ValueError, TypeError):  # a builtin without signature is a case
            annotations = [p.annotation for p in inspect.signature(fn).parameters.values()]
            if not any(isinstance(a, type) and issubclass(a, torch.Tensor) for a in annotations):
                continue
        yield Case(name, lambda fn=fn: (fn, None))


# ---- operators and modules over torch's own sample inputs ----


def with_parameters(count, body):
    """A function of `count` parameters that hands them to body as a list."""
    names = ", ".join(f"t{i}" for i in range(count))
    scope = {"body": body}
    exec(f"def program({names}):\n    return body([{names}])\n", scope)
    return scope["program"]


def is_tensor(a):
    return isinstance(a, torch.Tensor)


def program_of(call, args, kwargs):
    """call(*args, **kwargs) as a function of the tensors in args and kwargs."""
    leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if is_tensor(leaf)]

    def body(values):
        filled = list(leaves)
        for place, value in zip(places, values):
            filled[place] = value
        positional, named = torch.utils._pytree.tree_unflatten(filled, spec)
        return call(*positional, **named)

    return with_parameters(len(places), body)


def operator_cases(everything):
    methods = package("torch.testing._internal.common_methods_invocations")
    for op in methods.op_db:
        dtype = torch.float32 if torch.float32 in op.dtypes else next(iter(op.dtypes), None)
        if dtype is None:
            continue
        name = f"{op.name}.{op.variant_test_name}".rstrip(".")
        for i in range(SAMPLES):
            yield Case(f"{name} #{i}", functools.partial(make_operator, op, dtype, i))


def make_operator(op, dtype, i):
    torch.manual_seed(0)
    sample = next(itertools.islice(op.sample_inputs("cpu", dtype), i, None), None)
    if sample is None:
        raise Skip("no more samples")
    return program_of(op.op, (sample.input, *sample.args), sample.kwargs), None


def module_cases(everything):
    modules = package("torch.testing._internal.common_modules")
    for info in modules.module_db:
        for i in range(SAMPLES):
            yield Case(f"{info.formatted_name} #{i}", functools.partial(make_module, info, i))


def make_module(info, i):
    """The module itself as root: the trace goes into its forward."""
    torch.manual_seed(0)
    inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=False)
    sample = next(itertools.islice(inputs, i, None), None)
    if sample is None:
        raise Skip("no more samples")
    built = sample.constructor_input
    return info.module_cls(*built.args, **built.kwargs).eval(), None


FAMILIES = {
    "functional": functional_cases,
    "modules": module_cases,
    "operators": operator_cases,
    "torchvision": torchvision_cases,
    "timm": timm_cases,
    "transformers": transformers_cases,
}


def context_of(family):
    return bodies_only() if family == "functional" else contextlib.nullcontext()
