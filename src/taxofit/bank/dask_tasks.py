"""Tasks on a dask cluster, which may lose workers, even all of them, and gain others.

They go to the client directly. joblib's own backend would do the tasks of a single worker of one
thread at home, would give work to as many threads as there were at the start, and would scatter
what is large in a task to a worker that it can be lost with.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from taxofit.bank.parcel import Parcel

__all__ = ["DaskParcel", "is_dask", "run_on_dask"]

TASKS_PER_THREAD = 2  # sent ahead, so that no worker waits for home
RESTART_SECONDS = 120  # that a cluster without workers gets to start another
FETCH_SECONDS = 120
POLL_SECONDS = 2


@dataclass(frozen=True)
class DaskParcel:
    """A parcel scattered to one worker, from which each of the others fetches it once.

    Were it an argument that dask knows of, dask would put it in place before every task, and fetch
    it again whenever its memory manager had found one copy too many.

    Attributes
    ----------
    key : str
    name : str
        Under which it is published on the cluster.
    """

    key: str
    name: str

    def opened(self) -> Parcel:
        """Return the parcel, in a worker; a CancelledError where the last copy is lost."""
        from distributed import get_client, get_worker

        client: Any = get_client()
        here: Any = get_worker().data
        future = client.get_dataset(self.name)
        if future.key in here:
            return here[future.key]
        # dask waits without end for what was lost on the way, so we look after it meanwhile.
        pool = ThreadPoolExecutor(1)
        try:
            self._check_is_there(client, future)
            fetching = pool.submit(future.result, timeout=FETCH_SECONDS)
            while not fetching.done():
                try:
                    return fetching.result(timeout=POLL_SECONDS)
                except TimeoutError:
                    self._check_is_there(client, future)
            return fetching.result()
        finally:
            pool.shutdown(wait=False)

    def _check_is_there(self, client: Any, future: Any) -> None:
        if not any(client.who_has([future]).values()):
            raise CancelledError(f"{self.name} was lost with the worker that had it")


def is_dask(backend: Any) -> bool:
    """Return whether a joblib backend is that of dask.distributed."""
    return type(backend).__name__ == "DaskDistributedBackend"


def run_on_dask(
    parcel: Parcel, calls: Iterable[Callable[[DaskParcel], tuple[Any, ...]]], backend: Any
) -> Iterator[Any]:
    """Yield what calls return on the workers of a cluster, in the order in which they are done.

    Parameters
    ----------
    parcel : Parcel
        What they have in common.
    calls : iterable of callable
        From the parcel, as it stands in tasks, to (function, its arguments); called when a
        worker has room.
    backend : joblib's DaskDistributedBackend
        Its client, and what it was told of workers and tasks.
    """
    client, waiting = backend.client, iter(calls)
    patience = max(RESTART_SECONDS, backend.wait_for_workers_timeout or 0)
    running: set[Any] = set()
    try:
        with _scattered(parcel, client, patience) as carried:
            while True:
                n_wanted = TASKS_PER_THREAD * sum(client.nthreads().values())
                for call in itertools.islice(waiting, max(0, n_wanted - len(running))):
                    function, *arguments = call(carried)
                    running.add(
                        client.submit(function, *arguments, pure=False, **backend.submit_kwargs)
                    )
                if running:
                    done = _first_done(client, running, patience)
                    running -= done
                    for future in done:
                        yield future.result()
                elif n_wanted:
                    return
                else:
                    _wait_for_worker(client, patience)
    finally:
        client.cancel(list(running))


@contextmanager
def _scattered(parcel: Parcel, client: Any, patience: float) -> Iterator[DaskParcel]:
    """Yield what stands for the parcel in tasks, as long as it is on the cluster."""
    _wait_for_worker(client, patience)
    name = f"taxofit-{uuid4()}"
    try:
        client.publish_dataset(client.scatter(parcel, hash=False), name=name)
    except OSError as error:
        raise CancelledError("a worker was lost while it got the rows") from error
    try:
        yield DaskParcel(parcel.key, name)
    finally:
        client.unpublish_dataset(name)


def _first_done(client: Any, running: set[Any], patience: float) -> set[Any]:
    """Return the tasks that are done, at least one; an error where nobody works on them."""
    from distributed import wait

    last_seen = time.monotonic()
    while True:
        try:
            with client.as_current():  # dask gives `wait` no types
                done, _ = wait(running, POLL_SECONDS, "FIRST_COMPLETED")  # type: ignore[no-untyped-call]
        except TimeoutError:
            if client.nthreads():
                last_seen = time.monotonic()
            elif time.monotonic() > last_seen + patience:
                raise _no_workers(client, patience) from None
        else:
            return set(done)


def _wait_for_worker(client: Any, patience: float) -> None:
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError:
        raise _no_workers(client, patience) from None


def _no_workers(client: Any, patience: float) -> DataError:
    return DataError(
        f"the dask cluster at {client.scheduler.address} has had no worker for {patience:g} "
        f"seconds; start one, or wait longer with joblib.parallel_config(backend='dask', "
        f"wait_for_workers_timeout=SECONDS)"
    )
