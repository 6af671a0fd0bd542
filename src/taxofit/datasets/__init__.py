"""From files to rows with labels: svmlight, ARFF, tables, hierarchies, and made-up data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taxofit.datasets.arff import iter_arff, read_arff
    from taxofit.datasets.bad_rows import BadRows, LeftOut
    from taxofit.datasets.benchmarks import BENCHMARKS, data_folder, load_benchmark
    from taxofit.datasets.catalogue import make_shop_catalogue
    from taxofit.datasets.convert import convert_svmlight, convert_table
    from taxofit.datasets.dataset import Dataset
    from taxofit.datasets.features import (
        ColumnScaler,
        CountEncoder,
        encoder_from_state,
    )
    from taxofit.datasets.fetching import fetch_clef, fetch_diatoms
    from taxofit.datasets.frame_encoder import FrameEncoder
    from taxofit.datasets.hierarchy import read_hierarchy
    from taxofit.datasets.row_store import RowStore, open_store
    from taxofit.datasets.svmlight import SvmlightRows, iter_svmlight, read_svmlight
    from taxofit.datasets.synthetic import make_taxonomy_classification
    from taxofit.datasets.table_chunks import TableChunk, iter_table
    from taxofit.datasets.tables import from_frame, read_table
    from taxofit.datasets.text_encoder import TextEncoder

_HOME = {
    "BENCHMARKS": "benchmarks",
    "BadRows": "bad_rows",
    "ColumnScaler": "features",
    "CountEncoder": "features",
    "Dataset": "dataset",
    "FrameEncoder": "frame_encoder",
    "LeftOut": "bad_rows",
    "RowStore": "row_store",
    "SvmlightRows": "svmlight",
    "TableChunk": "table_chunks",
    "TextEncoder": "text_encoder",
    "convert_svmlight": "convert",
    "convert_table": "convert",
    "data_folder": "benchmarks",
    "encoder_from_state": "features",
    "fetch_clef": "fetching",
    "fetch_diatoms": "fetching",
    "from_frame": "tables",
    "iter_arff": "arff",
    "iter_svmlight": "svmlight",
    "iter_table": "table_chunks",
    "load_benchmark": "benchmarks",
    "make_shop_catalogue": "catalogue",
    "make_taxonomy_classification": "synthetic",
    "open_store": "row_store",
    "read_arff": "arff",
    "read_hierarchy": "hierarchy",
    "read_svmlight": "svmlight",
    "read_table": "tables",
}

__all__ = [
    "BENCHMARKS",
    "BadRows",
    "ColumnScaler",
    "CountEncoder",
    "Dataset",
    "FrameEncoder",
    "LeftOut",
    "RowStore",
    "SvmlightRows",
    "TableChunk",
    "TextEncoder",
    "convert_svmlight",
    "convert_table",
    "data_folder",
    "encoder_from_state",
    "fetch_clef",
    "fetch_diatoms",
    "from_frame",
    "iter_arff",
    "iter_svmlight",
    "iter_table",
    "load_benchmark",
    "make_shop_catalogue",
    "make_taxonomy_classification",
    "open_store",
    "read_arff",
    "read_hierarchy",
    "read_svmlight",
    "read_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'taxofit.datasets' has no attribute {name!r}")
    return getattr(import_module(f"taxofit.datasets.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
