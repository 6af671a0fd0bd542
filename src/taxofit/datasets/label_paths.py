"""From what a table says about labels to a taxonomy and one of its labels for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.datasets.table_chunks import is_missing
from taxofit.errors import DataError, TaxonomyError
from taxofit.taxonomy import Taxonomy, clean_path

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from numpy.typing import NDArray

    Path = tuple[Hashable, ...]

__all__ = [
    "guess_name_separator",
    "guess_path_separator",
    "label_reader",
    "labels_in",
    "labels_of_paths",
    "path_of",
    "paths_of_levels",
    "split_path",
]

PATH_SEPARATORS = (" > ", "->", "→", "»", "›", ">", "::", "|", "/", "\\", ";")
WEAK_SEPARATORS = ("|", "/", "\\", ";")  # also found inside names: TCP/IP
WEAK_SHARE = 0.5  # of the different labels that must have a weak separator
DOTTED_SHARE = 0.8  # of names, from which a dot is taken to separate levels


def guess_path_separator(values: Iterable[str]) -> str | None:
    """Return the separator that most of these paths have, None where there is none at all.

    Bars, slashes and semicolons are also found inside names, so half of the paths must have them.

    Examples
    --------
    >>> guess_path_separator(["Home > Toys/Games", "Pets > Fish", "Pets"])
    ' > '
    >>> guess_path_separator(["ham", "spam", "TCP/IP"]) is None
    True
    """
    distinct = set(values)
    counts = {
        separator: sum(separator in value for value in distinct) for separator in PATH_SEPARATORS
    }
    for separator in WEAK_SEPARATORS:
        if counts[separator] < WEAK_SHARE * len(distinct):
            counts[separator] = 0
    best = max(PATH_SEPARATORS, key=counts.__getitem__)
    return best if counts[best] else None


def guess_name_separator(names: Iterable[str]) -> str | None:
    """Return ``'.'`` where most names have one and some share what is before it.

    Examples
    --------
    >>> guess_name_separator(["rec.autos", "rec.sport.hockey", "sci.med"])
    '.'
    """
    distinct = set(names)
    tops = {name.partition(".")[0] for name in distinct}
    n_dotted = sum("." in name for name in distinct)
    return "." if n_dotted > DOTTED_SHARE * len(distinct) and len(tops) < len(distinct) else None


def split_path(value: str, separator: str | None) -> Path:
    """Return the names in a path, stripped; an empty one before the first separator is ignored.

    Examples
    --------
    >>> split_path("/Home/Toys/", "/")
    ('Home', 'Toys', '')
    """
    if separator is None:
        return (value.strip(),)
    names = tuple(name.strip() for name in value.split(separator))
    return names[1:] if len(names) > 1 and not names[0] else names


def path_of(value: Hashable, separator: str | None) -> Path:
    """Return the path that a table's value stands for; what is no text is a path of one.

    Examples
    --------
    >>> path_of("Home > Toys", " > "), path_of(7, None), path_of(None, None)
    (('Home', 'Toys'), (7,), ('',))
    """
    if isinstance(value, str):
        return split_path(value, separator)
    return ("",) if is_missing(value) else (value,)


def paths_of_levels(columns: Sequence[Sequence[Hashable]]) -> list[Path]:
    """Return a path a row from one column a level; missing values are empty names.

    Examples
    --------
    >>> paths_of_levels([["Home", "Pets"], ["Toys", None]])
    [('Home', 'Toys'), ('Pets', '')]
    """
    return [
        tuple(
            "" if is_missing(name) else name.strip() if isinstance(name, str) else name
            for name in row
        )
        for row in zip(*columns, strict=True)
    ]


def labels_of_paths(
    paths: Sequence[Path], taxonomy: Taxonomy | None, *, locate: Callable[[int], str]
) -> tuple[NDArray[Any], Taxonomy]:
    """Return the label of each row's path, and the taxonomy: that given, or that of the paths.

    Examples
    --------
    >>> labels_of_paths([("Home", "Toys"), ("Pets", "Fish")], None, locate="row {}".format)
    (array(['Toys', 'Fish'], dtype=object), Taxonomy(5 nodes, 2 leaves, depth 2))
    """
    cleaned: dict[Path, Path] = {}
    for row, path in enumerate(paths):
        if path not in cleaned:
            if all(is_missing(name) for name in path):
                raise DataError(f"{locate(row)}: the label is empty; every row needs one")
            try:
                cleaned[path] = clean_path(path)
            except TaxonomyError as error:
                raise DataError(f"{locate(row)}: {error}") from None
    if taxonomy is None:
        taxonomy = Taxonomy.from_paths(cleaned.values())
    return _labels([cleaned[path] for path in paths], taxonomy, locate), taxonomy


def labels_in(
    values: Sequence[Hashable],
    taxonomy: Taxonomy,
    separator: str | None,
    *,
    locate: Callable[[int], str],
) -> NDArray[Any]:
    """Return the label of each row's value, which may be a label of the taxonomy or a path.

    Examples
    --------
    >>> taxonomy = Taxonomy.from_paths([("Home", "Toys"), ("Pets", "Fish")])
    >>> labels_in(["Fish", "Home > Toys"], taxonomy, " > ", locate="row {}".format)
    array(['Fish', 'Toys'], dtype=object)
    """
    label_of = label_reader(taxonomy, separator)
    meant: dict[Hashable, Hashable] = {}
    for row, value in enumerate(values):
        if value in meant:
            continue
        if is_missing(value):
            raise DataError(f"{locate(row)}: the label is empty; every row needs one")
        meant[value] = label_of(value)
    return _labels([meant[value] for value in values], taxonomy, locate)


def label_reader(taxonomy: Taxonomy, separator: str | None) -> Callable[[Hashable], Hashable]:
    """Return what tells the label or path that a table's value stands for, known or not.

    Examples
    --------
    >>> taxonomy = Taxonomy.from_paths([("Home", "Toys"), ("Pets", "Fish")])
    >>> label_of = label_reader(taxonomy, " > ")
    >>> label_of(" Fish"), label_of("Home > Toys"), label_of("Cars")
    ('Fish', ('Home', 'Toys'), 'Cars')
    """
    has_integers = any(isinstance(label, int) for label in taxonomy.labels)

    def label_of(value: Hashable) -> Hashable:
        label = value.strip() if isinstance(value, str) else value
        if isinstance(label, str) and label not in taxonomy:
            if has_integers and label.lstrip("-").isdecimal():
                return int(label)
            if separator is not None and separator in label:
                return split_path(label, separator)
        return label

    return label_of


def _labels(
    meant: Sequence[Hashable], taxonomy: Taxonomy, locate: Callable[[int], str]
) -> NDArray[Any]:
    """Canonical labels; the first unknown one is a DataError that says how many rows have one."""
    try:
        nodes = taxonomy.nodes_of(meant)
    except TaxonomyError as error:
        unknown = {label for label in set(meant) if label not in taxonomy}
        row = next(row for row, label in enumerate(meant) if label in unknown)
        n_rows = sum(label in unknown for label in meant)
        raise DataError(
            f"{locate(row)}: {error} ({n_rows} of {len(meant)} rows have labels that are not in "
            f"the taxonomy)"
        ) from None
    labels = np.empty(len(meant), dtype=object)
    labels[:] = [taxonomy.labels[node] for node in nodes]
    return labels
