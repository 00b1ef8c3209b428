"""docs/options.md says what the table of options says."""

import pathlib


def test_every_option_is_documented():
    import fxjit

    text = (pathlib.Path(__file__).parents[2] / "docs/options.md").read_text()
    for row in fxjit._C.option_table():
        start, end = f"| `{row['name']}` | `{row['variable']}` | ", f" | {row['help']}"
        found = [line.removeprefix(start) for line in text.splitlines() if line.startswith(start) and end in line]
        assert len(found) == 1, f"docs/options.md lacks: {start}{row['default'] or 'empty'}{end} |"
        default, _, in_release = found[0].partition(end)[0].partition(" (")
        assert (row["default"] or "empty") in (default, in_release.removesuffix(" in a Release build)")), row["name"]
