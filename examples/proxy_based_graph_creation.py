"""Write a graph by hand, with Proxies that do the bookkeeping.

Run it with `python examples/proxy_based_graph_creation.py`.
"""

import torch

import fxjit.fx as fx


def main():
    graph = fx.Graph()
    # Proxies that meet in an operation must belong to one tracer.
    tracer = fx.proxy.GraphAppendingTracer(graph)
    x, y, z = (fx.Proxy(graph.placeholder(name), tracer) for name in "xyz")
    both = torch.cat([x, y])  # functions of torch take Proxies, in lists too
    result = (both * z).relu().sum()
    graph.output(result.node)
    graph.lint()

    module = fx.GraphModule(torch.nn.Module(), graph)
    print(graph)
    a, b, c = torch.randn(2, 3), torch.randn(4, 3), torch.randn(3)
    assert torch.equal(module(a, b, c), (torch.cat([a, b]) * c).relu().sum())

    stranger = fx.Proxy(fx.Graph().placeholder("w"), fx.proxy.GraphAppendingTracer(fx.Graph()))
    try:
        torch.cat([x, stranger])
    except RuntimeError as error:
        print(f"\nProxies of two tracers: {error}")
    else:
        raise AssertionError("Proxies of two tracers were mixed")


if __name__ == "__main__":
    main()
