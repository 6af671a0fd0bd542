"""Fuzz every target for long, led by coverage: ``python -m tests.fuzz.nightly --runs 10000``.

Each target runs in a process of its own under atheris, which mutates valid files with knowledge of
their structure and keeps those that reach new code. A crash, a hang of more than ten seconds, more
than 3 GB of memory or any error that is not ours ends the run with exit code 1 and the input in
``fuzz-findings/``.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FINDINGS = Path("fuzz-findings")
MAX_SECONDS = 10
MAX_MEMORY_MB = 3072
DONE = re.compile(r"Done (\d+) runs")
UNCAUGHT = "=== Uncaught Python exception"
REACHED = re.compile(r"cov: (\d+)")


def fuzz_one(name: str, n_runs: int, seed: int) -> None:
    """Fuzz one target in this process, which does not come back."""
    import atheris

    with atheris.instrument_imports(include=["taxofit"], exclude=_compiled_modules()):
        from tests.fuzz.mutations import MAX_BYTES
        from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    seeds = tempfile.mkdtemp(prefix="taxofit-corpus-")
    for number, data in enumerate(target.corpus()):
        Path(seeds, str(number)).write_bytes(data)

    def mutate(data: bytes, max_size: int, number: int) -> bytes:
        rng = random.Random(number)
        if rng.random() < 0.1:
            return atheris.Mutate(data, max_size)
        return target.mutate(bytes(data), rng)[:max_size]

    FINDINGS.mkdir(exist_ok=True)
    arguments = [
        sys.argv[0],
        f"-runs={n_runs}",
        f"-seed={seed}",
        f"-max_len={MAX_BYTES}",
        f"-timeout={MAX_SECONDS}",
        f"-rss_limit_mb={MAX_MEMORY_MB}",
        f"-artifact_prefix={FINDINGS}/{name}-",
        seeds,
    ]
    atheris.Setup(arguments, target, custom_mutator=mutate)
    atheris.Fuzz()


def _compiled_modules() -> list[str]:
    """Return the modules that numba compiles, which cannot report what they reach."""
    source = Path(__file__).parents[2] / "src"
    return [
        ".".join(file.relative_to(source).with_suffix("").parts)
        for file in source.rglob("*.py")
        if "numba" in file.read_text(encoding="utf-8")
    ]


def main() -> int:
    """Fuzz all targets one after the other, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000, help="inputs for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="one target")
    options = parser.parse_args()
    if "TAXOFIT_FUZZ_TARGET" in os.environ:
        fuzz_one(os.environ["TAXOFIT_FUZZ_TARGET"], options.runs, options.seed)
    from tests.fuzz.targets import TARGETS

    names = [options.only] if options.only else list(TARGETS)
    n_all, failed = 0, []
    for name in names:
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.nightly", *sys.argv[1:]],
            env=os.environ | {"TAXOFIT_FUZZ_TARGET": name},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        said = done.stdout + done.stderr
        runs = int(match[1]) if (match := DONE.search(said)) else 0
        coverage = max(map(int, REACHED.findall(said)), default=0)
        n_all += runs
        seconds = time.perf_counter() - started
        print(f"{name:12} {runs:7,} inputs  {coverage:6,} branches  {seconds:6.1f} s", flush=True)
        if done.returncode != 0 or not runs:
            failed.append(name)
            print(said[said.find(UNCAUGHT) :][:4000] if UNCAUGHT in said else said[-4000:])
    print(
        f"{n_all:,} inputs in all; " + (f"failed: {', '.join(failed)}" if failed else "no finding")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
