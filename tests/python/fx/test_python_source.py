"""Python source of a graph, which torch.fx writes; and what has no meaning where none is generated."""

import importlib
import inspect

import pytest
import torch

import fxjit


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.scale = torch.nn.Parameter(torch.full((3,), 2.0))

    def forward(self, x, bias=None, *, flag: bool = True):
        y = torch.relu(self.linear(x)) * self.scale
        return {"y": y, "pair": (y + 1, y.view(-1))}


class Pairs(torch.nn.Module):
    def forward(self, x, both):
        return x + both[0] * both[1]


PROGRAMS = [
    (Model(), None),
    (lambda x: torch.add(x, 1, alpha=float("inf")).to(torch.float16)[..., 1:], None),
    (Pairs(), {"both": (torch.fx.PH, torch.fx.PH)}),
]


@pytest.mark.parametrize(("program", "concrete"), PROGRAMS)
@pytest.mark.parametrize("options", [{}, {"verbose": True}, {"expanded_def": True}])
def test_source_of_a_graph_is_the_one_of_torch_fx(program, concrete, options):
    code = fxjit.fx.symbolic_trace(program, concrete).graph.python_code("self", **options)
    expected = torch.fx.symbolic_trace(program, concrete).graph.python_code("self", **options)
    assert code.src == expected.src and code.globals.keys() == expected.globals.keys()
    assert isinstance(code, fxjit.fx.graph.PythonCode)


def test_source_runs():
    model = Model()
    code = fxjit.fx.symbolic_trace(model).graph.python_code("self")
    names = dict(code.globals)
    exec(code.src, names)
    x = torch.randn(2, 4)
    assert torch.equal(names["forward"](model, x)["pair"][0], model(x)["pair"][0])


def test_source_is_of_the_edited_graph():
    gm = fxjit.fx.symbolic_trace(lambda x: torch.relu(x))
    node = next(n for n in gm.graph.nodes if n.op == "call_function")
    node.target = torch.tanh
    assert "torch.tanh(x)" in gm.graph.python_code("self").src


def test_to_folder_writes_a_package_that_needs_no_fxjit(tmp_path, monkeypatch):
    model = Model()
    fxjit.fx.symbolic_trace(model).to_folder(tmp_path / "written_model", "Written")
    assert "fxjit" not in (tmp_path / "written_model" / "module.py").read_text()
    monkeypatch.syspath_prepend(tmp_path)
    again = importlib.import_module("written_model").Written()
    x = torch.randn(2, 4)
    assert torch.equal(again(x)["y"], model(x)["y"])


LEFT_OUT = [
    (lambda: fxjit.fx.Graph(), "on_generate_code", "Interpreter"),
    (lambda: fxjit.fx.CodeGen(), "gen_fn_def", r"parameters\(\)"),
    (lambda: fxjit.fx.CodeGen(), "generate_output", r"process_outputs\(\)"),
    (lambda: fxjit.fx.CodeGen(), "additional_globals", r"process_inputs\(\)"),
]


@pytest.mark.parametrize(("make", "name", "advice"), LEFT_OUT)
def test_what_needs_generated_source_is_not_there_and_says_what_is(make, name, advice):
    assert not hasattr(make(), name)
    with pytest.raises(AttributeError, match=f"has no {name}: .*{advice}"):
        getattr(make(), name)


@pytest.mark.parametrize("base", [fxjit.fx.CodeGen, torch.fx.CodeGen])
def test_a_calling_convention_that_generates_source_is_refused(base):
    class ListCodeGen(base):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, args_list):\n    {', '.join(free_vars)} = args_list"

        def process_inputs(self, *inputs):
            return inputs[0]

    graph = fxjit.fx.symbolic_trace(lambda a, b: a + b).graph
    with pytest.raises(NotImplementedError, match=r"ListCodeGen.gen_fn_def would not be called.*parameters\(\)"):
        graph.set_codegen(ListCodeGen())


def test_a_calling_convention_says_its_parameters():
    class ListCodeGen(fxjit.fx.CodeGen):
        def parameters(self, graph):
            return [("args_list", inspect.Parameter.empty, inspect.Parameter.empty)]

        def process_inputs(self, args_list):
            return args_list

    gm = fxjit.fx.symbolic_trace(lambda a, b: a + b)
    gm.graph.set_codegen(ListCodeGen())
    gm.recompile()
    assert torch.equal(gm([torch.ones(2), torch.ones(2)]), torch.full((2,), 2.0))
