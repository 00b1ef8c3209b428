"""Record profiler ranges as nodes: regions of a program stay visible in its graph and in its profile.

Run it with `python examples/profiling_tracer.py`.
"""

import contextlib

import torch
from torch.profiler import ProfilerActivity, profile

import fxjit.fx as fx

# Calls that must stay though nobody uses what they return.
enter, leave = torch.ops.profiler._record_function_enter_new, torch.ops.profiler._record_function_exit
fx.node._side_effectful_functions.update({enter.default, leave._RecordFunction})


class ProfilingTracer(fx.Tracer):
    """While it traces, entering and leaving a record_function are call_function nodes."""

    @contextlib.contextmanager
    def ranges_as_nodes(self):
        cls = torch.autograd.profiler.record_function
        saved = cls.__enter__, cls.__exit__

        def begin(range):
            range.proxy = self.create_proxy("call_function", enter.default, (range.name, range.args), {})
            return range

        def end(range, *exception):
            self.create_proxy("call_function", leave._RecordFunction, (range.proxy,), {})

        cls.__enter__, cls.__exit__ = begin, end
        try:
            yield
        finally:
            cls.__enter__, cls.__exit__ = saved

    def trace(self, root, concrete_args=None):
        with self.ranges_as_nodes():
            return super().trace(root, concrete_args)


class Model(torch.nn.Module):
    def forward(self, x):
        with torch.profiler.record_function("first half"):
            x = x.sin()
        with torch.profiler.record_function("second half"):
            x = x.cos()
        return x


def main():
    model, x = Model(), torch.randn(8)
    module = fx.GraphModule(model, ProfilingTracer().trace(model))
    module.graph.eliminate_dead_code()
    module.recompile()
    print(module.graph)
    assert len([n for n in module.graph.nodes if n.op == "call_function"]) == 4
    with profile(activities=[ProfilerActivity.CPU]) as p:
        assert torch.equal(module(x), model(x))
    names = [e.name for e in p.events()]
    print("\nranges in the profile:", [n for n in names if n.endswith("half")])
    assert names.count("first half") == names.count("second half") == 2  # the graph's and the model's


if __name__ == "__main__":
    main()
