"""Where a fit's blocks are solved, as the command line names it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["spread_over"]


@contextmanager
def spread_over(*, dask: str | None = None, n_workers: int | None = None) -> Iterator[None]:
    """Have fits inside this context spread over a dask cluster, or over processes of this machine.

    Local processes are joblib's own: they need nothing installed and read the rows from one memory
    map. Threads, which are used by default, are as fast; processes are for machines where a
    single one may not use all cores or memory.

    Parameters
    ----------
    dask : str, optional
        Address of a dask scheduler, such as ``tcp://10.0.0.1:8786``.
    n_workers : int, optional
        Processes on this machine.

    Examples
    --------
    >>> from taxofit.bank.distribution import workers_backend
    >>> with spread_over(n_workers=2):
    ...     type(workers_backend()).__name__
    'LokyBackend'
    >>> with spread_over():
    ...     workers_backend() is None
    True
    """
    from joblib import parallel_config

    if dask is not None:
        with _client(dask) as client, parallel_config(backend="dask", client=client):
            yield
    elif n_workers is not None:
        with parallel_config(backend="loky", n_jobs=n_workers):
            yield
    else:
        yield


def _client(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise DataError("--dask needs dask.distributed: pip install 'taxofit[cluster]'") from None
    try:
        return Client(address, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise DataError(
            f"no dask scheduler answers at {address}: {error or type(error).__name__}; start one "
            f"with `dask scheduler`, or see docs/clusters.md"
        ) from error
