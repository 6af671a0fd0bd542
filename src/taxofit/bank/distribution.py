"""Blocks as joblib tasks: over processes and machines, through whatever backend is active.

    with joblib.parallel_config(backend="dask"):
        classifier.fit(X, y)

What the blocks of a bank have in common (rows above all) goes to every worker once, as a
:class:`Parcel`; a task then carries node numbers, and comes back as what was picked from its
solution. How a parcel travels is up to the backend: dask scatters it, Ray keeps it in its object
store, Spark broadcasts it. joblib's own processes exchange parcels and results as files; see
:mod:`taxofit.bank.process_files`. Tasks of dask go to its client directly; see
:mod:`taxofit.bank.dask_tasks`.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

from taxofit.bank.block_solver import solver_for
from taxofit.bank.dask_tasks import DaskParcel, is_dask, run_on_dask
from taxofit.bank.parcel import Parcel
from taxofit.bank.process_files import FiledBlocks, FileParcel, filed_parcel, is_on_this_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from taxofit.bank.block_solver import BlockSolver
    from taxofit.bank.block_work import BlockTask, BlockWork, SolvedBlock

    Solved = tuple[int, list[SolvedBlock]]

__all__ = ["opened_parcels", "solve_on_workers", "workers_backend"]

MAX_OPEN = 2  # parcels of which a worker keeps the rows and the solver
# Dask and Ray give the task of a lost worker to another. What they cannot make good is the loss of
# the last copy of the rows, and joblib's own processes make good nothing: then we start over with
# the tasks that are left, and give up when that brings nothing three times in a row.
LOST_WORKER = (BrokenExecutor, CancelledError, TimeoutError)
N_ATTEMPTS = 3
TASKS_PER_WAVE = 4  # for each worker, where a backend returns nothing before all is done


@dataclass(frozen=True)
class _RayParcel:
    """A parcel in Ray's object store: every machine fetches it once."""

    key: str
    reference: Any

    def opened(self) -> Parcel:
        import ray

        return ray.get(self.reference)


@dataclass(frozen=True)
class _SparkParcel:
    """A parcel that Spark has broadcast: every executor fetches it once."""

    key: str
    broadcast: Any

    def opened(self) -> Parcel:
        return self.broadcast.value


AnyParcel = Parcel | DaskParcel | FileParcel | _RayParcel | _SparkParcel


class _Bench(NamedTuple):
    """What a worker has at hand for the tasks of a parcel."""

    work: BlockWork
    solver: BlockSolver
    lock: Lock  # a solver that threads by itself does one block at a time
    n_blas_threads: int


_benches: OrderedDict[str, _Bench] = OrderedDict()
_opening = Lock()
_opened_keys: list[str] = []


def workers_backend() -> Any | None:
    """Return the joblib backend that is set, if its workers do not share this process's memory.

    Where none is set, or one of threads, blocks are solved in threads of our own.

    Examples
    --------
    >>> workers_backend() is None
    True
    >>> with joblib.parallel_config(backend="loky", n_jobs=2):
    ...     type(workers_backend()).__name__
    'LokyBackend'
    """
    backend, _ = get_active_backend(prefer="threads")
    return None if getattr(backend, "supports_sharedmem", False) else backend


def solve_on_workers(
    work: BlockWork, tasks: Mapping[int, Callable[[], BlockTask]], backend: Any
) -> Generator[Solved]:
    """Yield the number of every task and what came of it, as they come in.

    Parameters
    ----------
    work : BlockWork
    tasks : mapping of int to callable
        What makes each task; called when its turn has come, so that starts are not all made at
        once.
    backend : joblib backend
        From :func:`workers_backend`.
    """
    waiting = dict(tasks)
    n_in_vain = 0
    while waiting:
        n_before, lost = len(waiting), None
        try:
            for number, solved in _dispatch(Parcel.of(work), waiting, backend):
                del waiting[number]
                yield number, solved
        except LOST_WORKER as error:
            lost = error
        # Without an error too: joblib may take a task that failed for the end of all tasks.
        n_in_vain = n_in_vain + 1 if len(waiting) == n_before else 0
        if n_in_vain == N_ATTEMPTS:
            raise lost or CancelledError("workers are lost before they have done anything")


def _dispatch(
    parcel: Parcel, tasks: Mapping[int, Callable[[], BlockTask]], backend: Any
) -> Iterator[Solved]:
    """Yield results as they come, or wave by wave where the backend holds them back."""
    in_order = list(tasks.items())
    if is_dask(backend):
        prepared = (partial(_call, number, make) for number, make in in_order)
        yield from run_on_dask(parcel, prepared, backend)
        return
    with _carried(parcel, backend) as carried:
        calls = (
            joblib.delayed(_solve_in_worker)(carried, number, make()) for number, make in in_order
        )
        for number, solved in _results(calls, backend):
            yield number, solved.collect() if isinstance(solved, FiledBlocks) else solved


def _results(calls: Iterator[Any], backend: Any) -> Iterator[tuple[int, Any]]:
    if backend.supports_return_generator:
        yield from joblib.Parallel(batch_size=1, return_as="generator_unordered")(calls)
        return
    size = TASKS_PER_WAVE * joblib.effective_n_jobs(-1)
    while wave := list(itertools.islice(calls, size)):
        yield from joblib.Parallel(batch_size=1)(wave)


@contextmanager
def _carried(parcel: Parcel, backend: Any) -> Iterator[AnyParcel]:
    """Yield what stands for the parcel in the tasks of a backend."""
    if type(backend).__module__.startswith("ray."):
        import ray

        yield _RayParcel(parcel.key, ray.put(parcel))
    elif type(backend).__module__.startswith("joblibspark."):
        from pyspark.sql import SparkSession

        context = SparkSession.builder.getOrCreate().sparkContext
        yield _SparkParcel(parcel.key, context.broadcast(parcel))
    elif is_on_this_machine(backend):
        with filed_parcel(parcel) as filed:
            yield filed
    else:
        yield parcel


def _call(number: int, make: Callable[[], BlockTask], parcel: AnyParcel) -> tuple[Any, ...]:
    return _solve_in_worker, parcel, number, make()


def _solve_in_worker(
    parcel: AnyParcel, number: int, task: BlockTask
) -> tuple[int, list[SolvedBlock] | FiledBlocks]:
    solved = _solved(_bench_of(parcel), task)
    return number, parcel.leave(number, solved) if isinstance(parcel, FileParcel) else solved


def _solved(bench: _Bench, task: BlockTask) -> list[SolvedBlock]:
    if bench.solver.is_threaded:
        return list(bench.work.solve(task, bench.solver))
    with bench.lock, threadpool_limits(bench.n_blas_threads, user_api="blas"):
        return list(bench.work.solve(task, bench.solver))


def _bench_of(parcel: AnyParcel) -> _Bench:
    """Return rows and solver for a parcel, made by the first task that asks."""
    with _opening:
        if parcel.key not in _benches:
            opened = parcel.opened()
            work = opened.unpack()
            solver = solver_for(work.rows, work.settings, work.device)
            _benches[parcel.key] = _Bench(work, solver, Lock(), opened.n_blas_threads)
            _opened_keys.append(parcel.key)
        _benches.move_to_end(parcel.key)
        while len(_benches) > MAX_OPEN:
            _benches.popitem(last=False)
        return _benches[parcel.key]


def opened_parcels() -> tuple[str, ...]:
    """Return the keys of the parcels that this process has opened, in order.

    Examples
    --------
    >>> opened_parcels()
    ()
    """
    return tuple(_opened_keys)
