"""Training rows through a store on disk: converted once, mapped by every fit after that."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit.datasets import (
    ColumnScaler,
    CountEncoder,
    FrameEncoder,
    TextEncoder,
    convert_svmlight,
    convert_table,
    open_store,
    read_hierarchy,
)
from taxofit.datasets.row_store import MANIFEST, read_store_manifest
from taxofit.errors import DataError
from taxofit.workflow.sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from taxofit.datasets import Dataset, RowStore
    from taxofit.progress import StageProgress
    from taxofit.workflow.options import FitOptions

__all__ = ["encoder_for", "read_through_store"]


def encoder_for(options: FitOptions, source: Source) -> Any:
    """Return what turns the values of a file into features, not yet fitted; None for numbers."""
    if source.category or (source.text and source.numeric):
        return FrameEncoder(
            text=source.text,
            numeric=source.numeric,
            category=source.category,
            features=options.features if source.text else "words",  # type: ignore[arg-type]
        )
    if source.text:
        return TextEncoder(features=options.features)  # type: ignore[arg-type]
    if source.format == "svmlight" and not options.raw:
        return CountEncoder(sublinear_tf=True)
    return ColumnScaler() if options.scale == "max" else None


def read_through_store(
    file: str, options: FitOptions, folder: str, *, tell: StageProgress
) -> tuple[Dataset, Source, Any]:
    """Return encoded training rows mapped from a store, how to read more, and the fitted encoder.

    The store is made where there is none, and made again where the file or the way to read it has
    changed.

    Parameters
    ----------
    file : str
        svmlight, or a table.
    options : FitOptions
    folder : str
        Of the store.
    tell : callable
        Called with (stage, rows so far, 0).
    """
    source = Source.from_options(options, file)
    taxonomy = None if options.hierarchy is None else read_hierarchy(options.hierarchy)
    source, notes = source.with_separator(file, taxonomy)
    encoder = _stored_encoder(options, source)
    made_from = _origin(file, source, encoder)
    if not (Path(folder) / MANIFEST).exists() or (
        read_store_manifest(folder).get("made_from") != made_from
    ):
        _convert(file, source, encoder, folder, made_from, lambda n: tell("Converting", n, 0))
    tell("Opening", 0, 0)
    store = open_store(folder)
    if store.feature_ids is not None:
        source = replace(source, feature_ids=tuple(store.feature_ids.tolist()))
    dataset = store.to_dataset(taxonomy, internal_labels=options.internal_labels)  # type: ignore[arg-type]
    return replace(dataset, notes=(*notes, *dataset.notes)), source, store.encoder


def _stored_encoder(options: FitOptions, source: Source) -> Any:
    """Return an encoder that can be fitted on rows that come some at a time."""
    chosen = replace(options, features="words") if options.features == "auto" else options
    encoder = encoder_for(chosen, source)
    if isinstance(encoder, FrameEncoder):
        raise DataError(
            "a store holds rows of texts or of numbers, not of both or of categories; leave out "
            "--store, or name --text or --numeric columns only"
        )
    return encoder


def _convert(
    file: str,
    source: Source,
    encoder: Any,
    folder: str,
    made_from: dict[str, Any],
    progress: Callable[[int], None],
) -> RowStore:
    if source.format == "svmlight":
        return convert_svmlight(
            file,
            folder,
            ignore_features=source.ignore_features,
            encoder=encoder,
            made_from=made_from,
            progress=progress,
        )
    if source.format == "table":
        return convert_table(
            file,
            folder,
            text=source.text,
            numeric=source.numeric,
            label_path=source.label_path,
            levels=source.levels,
            separator=source.separator,
            encoder=encoder,
            encoding=source.encoding,
            delimiter=source.delimiter,
            made_from=made_from,
            progress=progress,
        )
    raise DataError(f"{file}: {source.format} files cannot go through a store; leave out --store")


def _origin(file: str, source: Source, encoder: Any) -> dict[str, Any]:
    """Return what a store of this file is known by, as JSON values."""
    try:
        state = Path(file).stat()
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None
    reading = asdict(replace(source, internal_labels="error", has_hierarchy=False))
    return {
        "bytes": state.st_size,
        "modified_ns": state.st_mtime_ns,
        "reading": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in reading.items()
        },
        "encoder": None if encoder is None else [type(encoder).__name__, encoder.get_params()],
    }
