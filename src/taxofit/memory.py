"""How much memory this process can still have: the machine's, its control group's, its limits'."""

from __future__ import annotations

import math
from pathlib import Path

__all__ = ["available_memory"]

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60  # version 1 of control groups writes a huge number where there is no limit


def available_memory() -> float:
    """Return bytes; infinity where nothing is known.

    Pages of files can be dropped at any time and count as available, as in Linux's own figure.

    Examples
    --------
    >>> available_memory() > 0
    True
    """
    return max(0.0, min(_of_the_machine(), _of_the_groups(), _of_the_limits()))


def _of_the_machine() -> float:
    return _kilobytes(PROC / "meminfo", "MemAvailable")


def _of_the_groups() -> float:
    """Return the least of what this process's control group and those above it have left."""
    left = math.inf
    for line in _text(PROC / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, limit, usage, idle = CGROUPS, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root = CGROUPS / "memory"
            limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
            idle = "total_inactive_file"
        else:
            continue
        folder = root / path.lstrip("/")
        for group in (folder, *folder.parents):
            if not group.is_relative_to(root):
                break
            allowed = _number(_text(group / limit))
            if allowed < UNLIMITED:
                used = _number(_text(group / usage), default=0.0)
                droppable = _entry(group / "memory.stat", idle, default=0.0)
                left = min(left, allowed - used + droppable)
    return left


def _of_the_limits() -> float:
    """Return what ``ulimit -d`` and ``ulimit -v`` leave."""
    try:
        import resource
    except ImportError:  # Windows
        return math.inf
    left = math.inf
    for limit, field in ((resource.RLIMIT_DATA, "VmData"), (resource.RLIMIT_AS, "VmSize")):
        allowed, _ = resource.getrlimit(limit)
        if allowed != resource.RLIM_INFINITY:
            left = min(left, allowed - _kilobytes(PROC / "self" / "status", field, default=0.0))
    return left


def _kilobytes(path: Path, field: str, default: float = math.inf) -> float:
    return 1024 * _entry(path, f"{field}:", default / 1024)


def _entry(path: Path, field: str, default: float) -> float:
    for line in _text(path).splitlines():
        if line.startswith((f"{field} ", f"{field}\t")):
            return _number(line.split()[1], default)
    return default


def _number(text: str, default: float = math.inf) -> float:
    try:
        return float(int(text))
    except ValueError:
        return default


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
