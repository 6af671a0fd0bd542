"""Hierarchical classification that repairs the taxonomy it is given."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from taxofit._version import __version__

if TYPE_CHECKING:
    from taxofit.classifier import TaxonomyClassifier
    from taxofit.errors import DataError, DeviceError, ModelError, TaxofitError, TaxonomyError
    from taxofit.model_store import load_model
    from taxofit.taxonomy import Taxonomy

_HOME = {
    "DataError": "errors",
    "DeviceError": "errors",
    "ModelError": "errors",
    "TaxofitError": "errors",
    "Taxonomy": "taxonomy",
    "TaxonomyClassifier": "classifier",
    "TaxonomyError": "errors",
    "load_model": "model_store",
}

__all__ = [
    "DataError",
    "DeviceError",
    "ModelError",
    "TaxofitError",
    "Taxonomy",
    "TaxonomyClassifier",
    "TaxonomyError",
    "__version__",
    "load_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'taxofit' has no attribute {name!r}")
    return getattr(import_module(f"taxofit.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
