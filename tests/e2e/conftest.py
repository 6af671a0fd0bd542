from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
TIMEOUT_SECONDS = 240
SHOP = {
    "Home > Kitchen > Kettles": ("steel kettle", "whistling kettle", "electric kettle"),
    "Home > Kitchen > Mugs": ("stoneware mug", "travel mug", "enamel mug"),
    "Home > Garden": ("garden spade", "hedge shears", "garden hose"),
    "Pets > Fish": ("guppy food", "fish tank", "aquarium pump"),
    "Pets > Dogs": ("dog lead", "puppy bowl", "dog biscuits"),
}
WORDS = ("small", "large", "blue", "red")


@pytest.fixture(scope="session")
def taxofit():
    """Run the command line as a person types it, ``given`` on its input; return the process."""

    def run(
        *arguments: object, folder: Path | None = None, given: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(SOURCE), os.getenv("PYTHONPATH")])),
            "PYTHONUTF8": "1",
            "COLUMNS": "100",
        }
        return subprocess.run(
            [sys.executable, "-m", "taxofit", *map(str, arguments)],
            cwd=folder,
            env=environment,
            input=given,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def shop_csv(tmp_path_factory) -> Path:
    """Write sixty products in five categories, at two and three levels."""
    file = tmp_path_factory.mktemp("shop") / "shop.csv"
    lines = [
        f"{word} {title},{path}"
        for path, titles in SHOP.items()
        for title in titles
        for word in WORDS
    ]
    file.write_text("\n".join(["title,category", *lines]) + "\n", encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def shop_model(taxofit, shop_csv, tmp_path_factory) -> Path:
    """Fit a model on the sixty products and return its folder."""
    folder = tmp_path_factory.mktemp("fitted") / "model"
    done = taxofit("fit", shop_csv, "--text", "title", "--path", "category", "--model", folder)
    assert done.returncode == 0, done.stderr
    return folder
