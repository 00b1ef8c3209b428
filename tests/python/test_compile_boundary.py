"""What comes into a compiled call and leaves it besides values: fresh tensors, devices, warnings, tangents, sizes."""

import subprocess
import sys
import warnings

import pytest
import torch

import fxjit


def calls(compiled, *args, count=3):
    with torch.no_grad():
        return [compiled(*args) for _ in range(count)]


@pytest.mark.parametrize("make", [
    lambda: torch.zeros(3), lambda: torch.tensor([1.0, 2.0]), lambda: torch.arange(3), lambda: torch.eye(2)[0],
    lambda: torch.full((2,), 7), lambda: torch.linspace(0, 1, 3), lambda: torch.tensor(4)])
def test_a_tensor_made_by_the_program_is_a_new_one_at_each_call(make):
    compiled = fxjit.compile(lambda x: (make(), x + 1))
    for _ in range(4):
        with torch.no_grad():
            made, _ = compiled(torch.ones(3))
        assert torch.equal(made, make()) and made.dtype == make().dtype
        made.add_(1)


def test_writes_to_a_made_tensor_do_not_pile_up():
    def program(x):
        total = torch.zeros(3)
        total += x
        total[0] = 5
        return total, torch.zeros(3).add_(x)

    compiled = fxjit.compile(program)
    for out in calls(compiled, torch.ones(3)):
        assert torch.equal(out[0], torch.tensor([5.0, 1, 1])) and torch.equal(out[1], torch.ones(3))


@pytest.mark.parametrize("make", [
    lambda: torch.Tensor([1, 2]), lambda: torch.FloatTensor([1, 2]), lambda: torch.Tensor(2).fill_(1),
    lambda: torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(HELD.clone()))])
def test_what_is_made_unseen_is_no_constant_of_the_graph(make):
    compiled = fxjit.compile(lambda x: make().add_(x))
    for out in calls(compiled, torch.ones(2)):
        assert torch.equal(out, make() + 1)


HELD = torch.ones(2)


@pytest.mark.parametrize("read", [lambda: HELD, lambda: HELD[None].T[:, 0], lambda: HELD.detach(), lambda: TABLE["a"][0]])
def test_what_the_program_finds_elsewhere_compiles(read):
    compiled = fxjit.compile(lambda x: read() + x)
    for out in calls(compiled, torch.ones(2)):
        assert torch.equal(out, torch.full((2,), 2.0))
    assert compiled.explain().specialisations


TABLE = {"a": [torch.ones(2)]}


def test_tensors_made_of_numbers_follow_the_default_dtype():
    compiled = fxjit.compile(lambda x: (torch.tensor(1.5) * x, torch.ones(2) + x))
    x = torch.ones(2, dtype=torch.int64)
    for dtype in (torch.float32, torch.float64, torch.float32):
        try:
            torch.set_default_dtype(dtype)
            assert [t.dtype for out in calls(compiled, x) for t in out] == [dtype] * 6
        finally:
            torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("program", [
    lambda x: (x + 1).exp(), lambda x: torch.softmax(x, -1), lambda x: torch.zeros(3, 4, device="meta") + x.to("meta")])
def test_tensors_without_data_stay_so(program):
    compiled = fxjit.compile(program)
    x = torch.ones(3, 4, device="meta")
    for out in calls(compiled, x):
        assert out.device.type == "meta" and out.shape == (3, 4)
    if not program(torch.ones(3, 4)).is_meta:
        for out in calls(compiled, torch.ones(3, 4)):
            assert torch.equal(out, program(torch.ones(3, 4)))


def test_meta_tensors_inside_a_program():
    compiled = fxjit.compile(lambda x: ((torch.empty(2, 3, device="meta") + 1).relu(), x * 2))
    for made, doubled in calls(compiled, torch.ones(3)):
        assert made.is_meta and made.shape == (2, 3) and torch.equal(doubled, torch.full((3,), 2.0))


def test_a_dual_tensor_keeps_its_tangent():
    compiled = fxjit.compile(lambda x: (x * 2).sin())
    x = torch.randn(5)
    calls(compiled, x)
    for _ in range(2):
        value, tangent = torch.func.jvp(compiled, (x,), (torch.ones(5),))
        torch.testing.assert_close(tangent, 2 * torch.cos(2 * x))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones(5))
            torch.testing.assert_close(torch.autograd.forward_ad.unpack_dual(compiled(dual)).tangent, tangent)
    assert torch.equal(compiled(x), value)


def test_warnings_of_compiled_code_are_python_warnings():
    compiled = fxjit.compile(lambda x: x.var(-1) + 1)
    x = torch.ones(3, 1)
    for _ in range(3):
        with pytest.warns(UserWarning, match="degrees of freedom"):
            calls(compiled, x, count=1)
    assert compiled.explain().recorded_calls == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="degrees of freedom"):
            calls(compiled, x)


def test_a_torch_size_stays_one():
    compiled = fxjit.compile(lambda x, s: (x.shape, x.shape[:1], s.numel(), x.expand(s)))
    for shape, part, count, wide in calls(compiled, torch.ones(1, 3), torch.Size([2, 3])):
        assert type(shape) is torch.Size and type(part) is torch.Size and count == 6 and wide.shape == (2, 3)
    assert not compiled.explain().notes


@pytest.mark.parametrize("program", [
    lambda x: x.clone().requires_grad_(), lambda x: x.detach().requires_grad_() * 2, lambda x: x.requires_grad_() * 2])
@pytest.mark.parametrize("compiler", [fxjit.compile, fxjit.fx.symbolic_trace])
def test_requires_grad_set_by_the_program(program, compiler):
    compiled = compiler(program)
    for _ in range(3):
        ours, eager = torch.ones(3), torch.ones(3)
        a, b = compiled(ours), program(eager)
        assert (a.requires_grad, a.is_leaf, ours.requires_grad) == (b.requires_grad, b.is_leaf, eager.requires_grad)


def test_a_write_counts_once():
    compiled = fxjit.compile(lambda x: x.mul_(2))
    x = torch.ones(3)
    for calls_made in (1, 2, 3):
        assert compiled(x) is x and x._version == calls_made


WITHOUT_MEMORY = """
import resource, torch, fxjit

def f(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    s = e.sum(-1, keepdim=True)
    return (e * (e - s)).sum(-1)

with torch.no_grad():
    compiled = fxjit.compile(f)
    small, large = torch.randn(2, 100), torch.zeros(2, 1 << 25)
    compiled(small)
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + (64 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        compiled(large)  # a row of exponentials has 128 MiB
    except RuntimeError as error:
        assert "out of memory" in str(error), error
    else:
        raise AssertionError("no error")
    torch.testing.assert_close(compiled(small), f(small))
    assert len(compiled.explain().specialisations) == 1
print("done")
"""


def test_no_memory_for_a_row_of_scratch_is_an_error():
    run = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY], capture_output=True, text=True)
    assert run.stdout == "done\n", run.stderr
