"""print_readable: graphs with shapes, and the lines of the program that the nodes come from."""

import torch

_COLOURS = {"dtype": "\033[31m", "shape": "\033[34m", "stride": "\033[2;34m", "device": "\033[2;32m", "dim": "\033[2m"}


def readable(module, name, kind, show):
    """show: include_stride, include_device, colored, additional_meta. `kind` is GraphModule: those among the children
    follow, indented."""
    lines = [f"class {name}(torch.nn.Module):", f"    graph(){_returns(module.graph)}:"]
    source = None
    for node in module.graph.nodes:
        place = _source(node.stack_trace) if node.stack_trace else None
        if place is not None and place != source:
            source = place
            lines.append("        " + _paint("dim", "# " + place, show))
        lines.append("        " + _line(node, show))
    for child_name, child in module.named_children():
        if isinstance(child, kind):
            lines += ["    " + line if line else "" for line in readable(child, child_name, kind, show).splitlines()]
    return "\n".join(lines)


def _returns(graph):
    output = next((n for n in reversed(graph.nodes) if n.op == "output"), None)
    return f" -> {torch.fx.node._type_repr(output.type)}" if output is not None and output.type else ""


def _line(node, show):
    text = node.format_node()
    value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
    described = _describe(value, show) if node.op != "output" else ""
    if described:
        text = text.replace(f"%{node.name} : ", f'%{node.name} : "{described}" ', 1)
    extra = [f"{key}: {node.meta[key]}" for key in show.get("additional_meta") or () if key in node.meta]
    return text + (_paint("dim", "  # " + ", ".join(extra), show) if extra else "")


def _describe(value, show):
    """ "f32[2, 3][3, 1]cpu" of a tensor or what says as much about one; those of a tuple, separated by commas."""
    if isinstance(value, (tuple, list)) and not hasattr(value, "dtype"):
        return ", ".join(filter(None, (_describe(v, show) for v in value)))
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return ""
    text = _paint("dtype", torch.fx.graph.dtype_abbrs.get(value.dtype, str(value.dtype)), show)
    text += _paint("shape", _sizes(value.shape), show)
    if show["include_stride"]:
        stride = value.stride() if callable(value.stride) else value.stride
        text += _paint("stride", _sizes(stride), show)
    if show["include_device"] and hasattr(value, "device"):
        text += _paint("device", str(value.device), show)
    return text


def _sizes(values):
    return f"[{', '.join(map(str, values))}]"


def _paint(part, text, show):
    return f"{_COLOURS[part]}{text}\033[0m" if show["colored"] else text


def _source(trace):
    """ "File: model.py:12 in forward, code: y = x + 1" of the innermost frame of a formatted stack."""
    lines = [line.strip() for line in trace.strip().splitlines()]
    at = max((i for i, line in enumerate(lines) if line.startswith("File ")), default=None)
    if at is None:
        return None
    parts = [part.strip() for part in lines[at].split(",")]
    if len(parts) < 3:
        return None
    code = f", code: {lines[at + 1]}" if at + 1 < len(lines) else ""
    return f"File: {parts[0][6:-1]}:{parts[1].removeprefix('line ')} {parts[2]}{code}"
