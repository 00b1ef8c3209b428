"""The repository's files, as the check tools see them: tracked or new, but not ignored."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def repo_files(root: Path, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> list[Path]:
    """Paths relative to `root`, sorted; outside a git checkout every file of the folders counts."""
    git = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *folders],
                         cwd=root, capture_output=True, text=True)
    if git.returncode == 0 and git.stdout:
        names = [Path(name) for name in git.stdout.split("\0") if name]
    else:
        names = [path.relative_to(root) for folder in folders for path in (root / folder).rglob("*")]
    return sorted({name for name in names if name.suffix in suffixes and (root / name).is_file()})
