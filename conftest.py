"""What pytest leaves out when a machine lacks an optional library, and what it throws away."""

from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore = [] if find_spec("torch") else ["src/taxofit/bank/torch_kernels.py"]
SOURCES = Path(__file__).parent / "src"


def pytest_configure(config: pytest.Config) -> None:
    """Throw compiled loops away that are older than any source file.

    Numba looks at the file of the loop that Python calls, not at those of the parts that it calls.
    """
    if not hasattr(config, "workerinput"):
        changed = max(file.stat().st_mtime for file in SOURCES.rglob("*.py"))
        for file in SOURCES.rglob("*.nb[ic]"):
            if file.stat().st_mtime < changed:
                file.unlink()
