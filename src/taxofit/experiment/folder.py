"""A data set of one's own: a folder with training rows, test rows and a taxonomy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from taxofit.datasets import iter_table, read_arff, read_hierarchy, read_svmlight, read_table
from taxofit.errors import DataError

if TYPE_CHECKING:
    from taxofit.datasets import Dataset
    from taxofit.taxonomy import Taxonomy

__all__ = ["read_folder"]

TABLES = (".csv", ".tsv", ".parquet")
SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".txt")
LABEL_COLUMNS = ("path", "label")
TEXT_COLUMN = "text"
HIERARCHIES = ("hierarchy", "taxonomy", "cat_hier")


def read_folder(folder: str | Path) -> tuple[Dataset, Dataset]:
    r"""Return the training and test rows of a folder.

    The folder holds ``train.*`` and ``test.*``, both of one kind, packed with gzip or not:

    - ``.arff``: Clus files, whose header lists the taxonomy; rows of internal nodes are dropped;
    - ``.svm``, ``.svmlight``, ``.libsvm`` or ``.txt``: svmlight rows, labelled with leaves;
    - ``.csv``, ``.tsv`` or ``.parquet``: a column ``path`` (or ``label``, with a hierarchy file)
      and either a column ``text`` or nothing but numbers besides.

    and, except for ARFF, the taxonomy: ``hierarchy.*``, ``taxonomy.*`` or ``cat_hier.*``, read by
    :func:`~taxofit.datasets.read_hierarchy`. A table with full paths needs none.

    Parameters
    ----------
    folder : path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "train.svm").write_text("3 1:1\n4 2:1\n")
    ...     _ = Path(folder, "test.svm").write_text("4 2:3\n")
    ...     _ = Path(folder, "hierarchy.txt").write_text("1 3\n2 4\n")
    ...     train, test = read_folder(folder)
    >>> train.n_rows, test.n_rows, train.taxonomy.leaves
    (2, 1, (3, 4))
    """
    folder = Path(folder)
    train_file, test_file = _only(folder, "train"), _only(folder, "test")
    if train_file is None or test_file is None:
        raise DataError(
            f"{folder} has no train.* and test.*; both are needed, as .arff, .svm, .txt, .csv, "
            f".tsv or .parquet"
        )
    kinds = {_kind(train_file), _kind(test_file)}
    if len(kinds) > 1:
        raise DataError(f"{train_file.name} and {test_file.name} in {folder} are of two kinds")
    named = next((f for stem in HIERARCHIES if (f := _only(folder, stem)) is not None), None)
    taxonomy = None if named is None else read_hierarchy(named)
    kind = kinds.pop()
    if kind == ".arff":
        train = read_arff(train_file, internal_labels="drop")
        test = read_arff(test_file, internal_labels="drop")
        return train, replace(test, taxonomy=train.taxonomy)
    if kind in SVMLIGHT:
        return _svmlight(folder, train_file, test_file, taxonomy)
    train = _table(train_file, taxonomy)
    return train, _table(test_file, taxonomy or train.taxonomy)


def _only(folder: Path, stem: str) -> Path | None:
    """Return the one file of this name, whatever it ends with."""
    found = sorted(f for f in folder.glob(f"{stem}.*") if f.is_file())
    if len(found) > 1:
        names = ", ".join(f.name for f in found)
        raise DataError(f"{folder} has several files named {stem}: {names}; keep one")
    return found[0] if found else None


def _kind(file: Path) -> str:
    suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
    kind = suffixes[-1].lower() if suffixes else ""
    if kind not in (".arff", *SVMLIGHT, *TABLES):
        raise DataError(
            f"{file}: do not know how to read {kind or 'a file without a suffix'}; "
            f"use one of .arff, {', '.join((*SVMLIGHT, *TABLES))}"
        )
    return kind


def _svmlight(
    folder: Path, train_file: Path, test_file: Path, taxonomy: Taxonomy | None
) -> tuple[Dataset, Dataset]:
    if taxonomy is None:
        raise DataError(
            f"{folder} has no hierarchy file; add hierarchy.txt with a parent and a child, or a "
            f"path from a top to a leaf, on each line"
        )
    train = read_svmlight(train_file, compact=True)
    test = read_svmlight(test_file, feature_ids=train.feature_ids)
    return train.to_dataset(taxonomy), test.to_dataset(taxonomy)


def _table(file: Path, taxonomy: Taxonomy | None) -> Dataset:
    heading = list(next(iter_table(file, chunk_rows=1)).columns)
    label = next((name for name in LABEL_COLUMNS if name in heading), None)
    if label is None:
        raise DataError(f"{file} has no column 'path' or 'label'; it has {', '.join(heading)}")
    if TEXT_COLUMN in heading:
        return read_table(file, text=TEXT_COLUMN, label_path=label, taxonomy=taxonomy)
    numeric = [name for name in heading if name not in LABEL_COLUMNS]
    return read_table(file, numeric=numeric, label_path=label, taxonomy=taxonomy)
