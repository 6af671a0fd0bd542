"""Where the real data sets are: $TAXOFIT_DATA, or ../shared/data beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from taxofit.datasets import data_folder

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def real_data(name: str = "") -> Path:
    """Return the folder of a data set, or of all of them; skip the test where it is absent."""
    folder = (data_folder() or DEFAULT_FOLDER) / name
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; set TAXOFIT_DATA to its folder")
    return folder
