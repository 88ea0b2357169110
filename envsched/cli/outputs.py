"""Files that a command writes."""

import sys
from pathlib import Path


def new_folder_said(path: Path | str | None) -> Path | str | None:
    """The callback of an option that names a file to write: a folder that will be made for it is said, as it may be a slip."""
    if path is not None and str(path) != "-":
        folder = Path(path).parent
        if not folder.exists():
            print(f"note: the folder {folder} is made for {Path(path).name}", file=sys.stderr)
    return path
