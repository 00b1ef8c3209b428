"""The picture of how time grows with the number of nodes."""

import math


def svg(found, sizes):
    """Seconds over nodes, both logarithmic: what is linear has the slope of the dashed line."""
    width, height, left, bottom = 640, 400, 70, 50
    values = [t for row in found.values() for t in row]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    x_low, x_high = math.log10(sizes[0]), math.log10(sizes[-1])

    def at(count, t):
        x = left + (math.log10(count) - x_low) / (x_high - x_low) * (width - left - 110)
        y = height - bottom - (math.log10(t) - low) / (high - low) * (height - bottom - 20)
        return f"{x:.1f},{y:.1f}"

    def text(point, content, extra=""):
        x, y = point.split(",")
        return f'<text x="{x}" y="{y}" font-family="sans-serif" font-size="12" {extra}>{content}</text>'

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for power in range(low, high + 1):
        a, b = at(sizes[0], 10.0**power), at(sizes[-1], 10.0**power)
        lines.append(f'<polyline points="{a} {b}" stroke="#ddd" fill="none"/>')
        label = f"{10**power * 1000:g} ms" if power < 0 else f"{10**power:g} s"
        lines.append(text(a, label, 'text-anchor="end" dx="-6" dy="4"'))
    for count in sizes:
        lines.append(text(at(count, 10.0**low), f"{count:,}", 'text-anchor="middle" dy="18"'))
    start = min(row[0] for row in found.values())
    end = start * sizes[-1] / sizes[0]
    lines.append(f'<polyline points="{at(sizes[0], start)} {at(sizes[-1], end)}" stroke="#888" fill="none" '
                 'stroke-dasharray="5 4"/>')
    colours = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b"]
    used = 0.0  # height of the last name: each has a line of its own
    for name, colour in sorted(zip(found, colours), key=lambda pair: -found[pair[0]][-1]):
        points = [at(count, t) for count, t in zip(sizes, found[name])]
        lines.append(f'<polyline points="{" ".join(points)}" stroke="{colour}" stroke-width="2" fill="none"/>')
        x, y = points[-1].split(",")
        used = max(float(y), used + 13)
        lines.append(text(f"{x},{used:.1f}", name, f'dx="8" dy="4" fill="{colour}"'))
    lines.append(text(f"{left},{height - 8}", "nodes; the dashed line is linear"))
    return "\n".join(lines + ["</svg>"]) + "\n"
