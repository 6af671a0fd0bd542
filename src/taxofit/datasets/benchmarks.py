"""The data sets of the paper and a few more, from files in folders as their sources give them."""

from __future__ import annotations

import os
import re
import tarfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.datasets.arff import read_arff
from taxofit.datasets.dataset import Dataset
from taxofit.datasets.files import open_bytes, text_lines
from taxofit.datasets.hierarchy import read_hierarchy
from taxofit.datasets.svmlight import read_svmlight
from taxofit.errors import DataError
from taxofit.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from taxofit.datasets.files import FilePath

__all__ = ["BENCHMARKS", "data_folder", "load_benchmark"]

DATA_VARIABLE = "TAXOFIT_DATA"
TRAIN_SHARE = 0.8
MAX_POST_BYTES = 4 * 2**20  # the longest post of 20 Newsgroups has 0.2 MB
NEWS_MEMBER = re.compile(r"(?:\./)?20news-bydate-(train|test)/([a-z0-9.-]+)/[0-9]+")
MERGED_SECTORS = {"31": "31-33", "32": "31-33", "33": "31-33"} | {
    "44": "44-45", "45": "44-45", "48": "48-49", "49": "48-49"
}  # fmt: skip


def data_folder() -> Path | None:
    """Return the folder that the environment variable TAXOFIT_DATA names, None where unset."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named) if named else None


def load_benchmark(
    name: str, folder: FilePath | None = None, *, random_state: int = 0
) -> tuple[Dataset, Dataset]:
    """Return the training and the test rows of a benchmark data set.

    ==============  =============================================================================
    ``clef``        X-ray images, 80 numbers; the header's 97 nodes, chains not collapsed
    ``diatoms``     microscope images, 371 numbers; rows labelled with internal nodes dropped
    ``dmoz-small``  web directory, raw counts; trained on Task 2's train and validation files, so
                    features that occur in the test file alone have no column
    ``ipc-d``       patents of section D, 100 numbers; 7 classes, 20 subclasses as leaves
    ``naics``       short descriptions of industries, texts; split 80:20 at random
    ``20news``      newsgroup posts, texts; 7 tops, 20 groups, split by date
    ==============  =============================================================================

    Test rows with labels that no training row has are kept.

    Parameters
    ----------
    name : str
        One of ``BENCHMARKS``.
    folder : path, optional
        The folder that holds ``CLEF``, ``DIATOMS`` and so on; `data_folder` by default.
    random_state : int
        Seed of the split where the source gives none (``naics``).

    Examples
    --------
    >>> load_benchmark("cleff", "data")
    Traceback (most recent call last):
        ...
    taxofit.errors.DataError: unknown benchmark 'cleff'; there are 20news, clef, diatoms, ...
    """
    if name not in BENCHMARKS:
        raise DataError(f"unknown benchmark {name!r}; there are {', '.join(sorted(BENCHMARKS))}")
    if folder is None:
        folder = data_folder()
    if folder is None:
        raise DataError(f"where is the data? Pass folder= or set {DATA_VARIABLE}")
    subfolder, load = BENCHMARKS[name]
    home = Path(folder, subfolder)
    if not home.is_dir():
        raise DataError(f"{name} is expected in the folder {home}, which does not exist")
    train, test = load(home, random_state)
    return replace(train, name=name), replace(test, name=f"{name} (test)")


def _clef(home: Path, _: int) -> tuple[Dataset, Dataset]:
    train = read_arff(_packed_or_not(home / "ImCLEF07A_Train.arff"))
    return _share_taxonomy(train, read_arff(_packed_or_not(home / "ImCLEF07A_Test.arff")))


def _diatoms(home: Path, _: int) -> tuple[Dataset, Dataset]:
    train, test = (
        read_arff(_packed_or_not(home / f"Diatoms_{part}.arff"), internal_labels="drop")
        for part in ("train", "test")
    )
    return _share_taxonomy(train, test)


def _packed_or_not(file: Path) -> Path:
    """Return the file as it was published where it is there, else the name of its gzip."""
    return file if file.exists() else file.with_name(f"{file.name}.gz")


def _share_taxonomy(train: Dataset, test: Dataset) -> tuple[Dataset, Dataset]:
    """Both with the training file's taxonomy; their headers must list the same nodes."""
    if set(train.taxonomy.labels) != set(test.taxonomy.labels):
        raise DataError(f"the headers of {train.name} and {test.name} have different classes")
    return train, replace(test, taxonomy=train.taxonomy)


def _dmoz_small(home: Path, _: int) -> tuple[Dataset, Dataset]:
    taxonomy = read_hierarchy(home / "cat_hier.txt", layout="paths")
    task = home / "Task2_Train_RDFData_Test_CrawlData"
    training_files = [task / "train.txt.gz", task / "validation.txt.gz"]
    train = read_svmlight(training_files, ignore_features=[0], compact=True)
    test = read_svmlight(task / "test.txt.gz", ignore_features=[0], feature_ids=train.feature_ids)
    return train.to_dataset(taxonomy), test.to_dataset(taxonomy)


def _ipc_d(home: Path, _: int) -> tuple[Dataset, Dataset]:
    """Labels such as D01D00: class D01, subclass D01D, and two digits that are not used."""
    labels = {
        part: [
            line.strip()[:4] for line in text_lines(home / f"{part}_label-D.txt") if line.strip()
        ]
        for part in ("train", "test")
    }
    codes = sorted({label for part in labels.values() for label in part})
    taxonomy = Taxonomy.from_paths([(code[:3], code) for code in codes])
    train, test = (
        Dataset(_dense(home / f"{part}-D.npy.gz"), _objects(labels[part]), taxonomy)
        for part in ("train", "test")
    )
    return train, test


def _naics(home: Path, random_state: int) -> tuple[Dataset, Dataset]:
    file = home / "naics2022_index.tsv.gz"
    codes, texts = [], []
    for number, line in enumerate(text_lines(file), start=1):
        code, tab, text = line.rstrip("\r\n").partition("\t")
        if not tab or len(code) != 6:
            raise DataError(f"{file}:{number}: expected a 6-digit code, a tab and a text")
        codes.append(code)
        texts.append(text)
    taxonomy = Taxonomy.from_paths(_naics_path(code) for code in sorted(set(codes)))
    everything = Dataset(_objects(texts), _objects(codes), taxonomy)
    order = np.random.default_rng(random_state).permutation(everything.n_rows)
    n_test = int(everything.n_rows * (1 - TRAIN_SHARE))
    return everything.subset(np.sort(order[n_test:])), everything.subset(np.sort(order[:n_test]))


def _naics_path(code: str) -> tuple[str, ...]:
    """Sector, then 3, 4, 5 and 6 digits; some sectors span several two-digit numbers."""
    sector = MERGED_SECTORS.get(code[:2], code[:2])
    return (sector, *(code[:n_digits] for n_digits in range(3, 7)))


def _newsgroups(home: Path, _: int) -> tuple[Dataset, Dataset]:
    posts: dict[str, tuple[list[str], list[str]]] = {"train": ([], []), "test": ([], [])}
    archive = home / "20news-bydate.tar.xz"
    try:
        with tarfile.open(archive, mode="r|xz") as members:
            for member in members:
                match = NEWS_MEMBER.fullmatch(member.name)
                if not member.isfile() or match is None:
                    continue
                if member.size > MAX_POST_BYTES:
                    raise DataError(f"{archive}: {member.name} has {member.size} bytes; not a post")
                content = members.extractfile(member)
                texts, groups = posts[match[1]]
                texts.append(content.read().decode("utf-8", "replace") if content else "")
                groups.append(match[2])
    except FileNotFoundError:
        raise DataError(f"no such file: {archive}") from None
    except (tarfile.TarError, EOFError) as error:
        raise DataError(f"{archive}: damaged archive ({error}); fetch it again") from None
    groups = sorted({*posts["train"][1], *posts["test"][1]})
    taxonomy = Taxonomy.from_paths([(group.split(".")[0], group) for group in groups])
    train, test = (
        Dataset(_objects(texts), _objects(labels), taxonomy) for texts, labels in posts.values()
    )
    return train, test


def _dense(path: Path) -> NDArray[np.float64]:
    with open_bytes(path) as handle:
        return np.asarray(np.load(BytesIO(handle.read()), allow_pickle=False), dtype=np.float64)


def _objects(values: Sequence[str]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


BENCHMARKS: dict[str, tuple[str, Callable[[Path, int], tuple[Dataset, Dataset]]]] = {
    "20news": ("20NEWS", _newsgroups),
    "clef": ("CLEF", _clef),
    "diatoms": ("DIATOMS", _diatoms),
    "dmoz-small": ("DMOZ-SMALL", _dmoz_small),
    "ipc-d": ("IPC-D", _ipc_d),
    "naics": ("NAICS2022", _naics),
}
"""Folder and loader of every benchmark, by name."""
