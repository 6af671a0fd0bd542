"""Two of the paper's data sets from the public repository that has them, checked and kept.

Nothing here is our data: CLEF and DIATOMS were published by Dimitrovski, Kocev, Loskovska and
Džeroski, and stand in the repository of C-HMCNN. pooch (the extra ``taxofit[fetch]``) fetches them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit.datasets.benchmarks import BENCHMARKS, load_benchmark
from taxofit.errors import DataError

if TYPE_CHECKING:
    from taxofit.datasets.dataset import Dataset
    from taxofit.datasets.files import FilePath

__all__ = ["fetch_clef", "fetch_diatoms"]

CACHE_VARIABLE, MIRROR_VARIABLE = "TAXOFIT_CACHE", "TAXOFIT_MIRROR"
COMMIT = "e887855ab4b3b8f22e4fafc80a0a33c1d1ac0041"
SOURCE = f"https://raw.githubusercontent.com/EGiunchiglia/C-HMCNN/{COMMIT}/HMC_data/others/"
SHA256 = {
    "clef": {
        "ImCLEF07A_Train.arff": "fe240039db5272579924897bcac6c0c38b6cb117277aa49281a2ec936b01e7c9",
        "ImCLEF07A_Test.arff": "e95c33e0bc8a23be9b093bc34268404c47f304739bd73eceda58f8cbc42a90fb",
    },
    "diatoms": {
        "Diatoms_train.arff": "19baf9a53db0d3e636481c3b80d0f6532ddb9586f829e22c9cb326effc917e36",
        "Diatoms_test.arff": "04c4ae6e90297e3da1771615f0ac2a535a0ea5bd4c0625d43052b5130e2f6a09",
    },
}


def fetch_clef(
    *, folder: FilePath | None = None, base_url: str | None = None
) -> tuple[Dataset, Dataset]:
    """Return training and test rows of CLEF, fetched on first use (2 MB) and kept.

    X-ray images, 80 numbers a row: 10,000 training and 1,006 test rows, as
    ``load_benchmark("clef")`` reads them.

    Parameters
    ----------
    folder : path, optional
        Where files are kept, as ``folder/CLEF``; `load_benchmark` and ``taxofit reproduce --data``
        take it too. The environment variable ``TAXOFIT_CACHE`` by default, or else the cache folder
        that this system gives to applications.
    base_url : str, optional
        Another place that has the same files; ``TAXOFIT_MIRROR`` by default, or else the repository
        of C-HMCNN at the commit that we know. What comes from anywhere must have the same SHA-256.

    Raises
    ------
    DataError
        Where a file cannot be fetched, or is not the one that was published.

    Examples
    --------
    >>> train, test = fetch_clef()  # doctest: +SKIP
    >>> train.n_rows, test.n_rows  # doctest: +SKIP
    (10000, 1006)
    """
    return _fetch("clef", folder, base_url)


def fetch_diatoms(
    *, folder: FilePath | None = None, base_url: str | None = None
) -> tuple[Dataset, Dataset]:
    """Return training and test rows of DIATOMS, fetched on first use (4 MB) and kept.

    Microscope images, 371 numbers a row: 1,940 training and 993 test rows, without those that are
    labelled with an internal node, as ``load_benchmark("diatoms")`` reads them. Parameters and
    errors are those of `fetch_clef`.
    """
    return _fetch("diatoms", folder, base_url)


def _fetch(name: str, folder: FilePath | None, base_url: str | None) -> tuple[Dataset, Dataset]:
    pooch = _import_pooch()
    cache = Path(folder or os.environ.get(CACHE_VARIABLE) or pooch.os_cache("taxofit"))
    source = (base_url or os.environ.get(MIRROR_VARIABLE) or SOURCE).rstrip("/") + "/"
    files = pooch.create(
        path=cache / BENCHMARKS[name][0],
        base_url=source,
        registry={file: f"sha256:{digest}" for file, digest in SHA256[name].items()},
    )
    for file in SHA256[name]:
        try:
            files.fetch(file)
        except ValueError as error:
            raise DataError(
                f"{source}{file} is not the file that was published ({_first_line(error)}); "
                f"nothing was kept: try again later, or name another source with base_url= or "
                f"{MIRROR_VARIABLE}"
            ) from None
        except OSError as error:  # of the network as of the disk
            raise DataError(
                f"{source}{file} cannot be fetched into {files.path} ({_first_line(error)}); try "
                f"again, name another source with base_url= or {MIRROR_VARIABLE}, or put the file "
                f"there yourself"
            ) from None
    return load_benchmark(name, cache)


def _import_pooch() -> Any:
    try:
        import pooch
    except ModuleNotFoundError:
        raise DataError(
            "fetching data needs pooch: install it with pip install 'taxofit[fetch]'"
        ) from None
    return pooch


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
