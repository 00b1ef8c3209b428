"""docs/options.md says what the table of options says."""

import pathlib


def test_every_option_is_documented():
    import fxjit
    text = (pathlib.Path(__file__).parents[2] / "docs/options.md").read_text()
    for row in fxjit._C.option_table():
        line = f"| `{row['name']}` | `{row['variable']}` | {row['default'] or 'empty'} | {row['help']}"
        assert line in text, f"docs/options.md lacks: {line} |"
