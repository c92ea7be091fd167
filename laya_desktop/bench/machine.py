"""What this machine and these programs are, for a result's head. Any thread; reads /proc, starts nothing."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
from pathlib import Path

import psutil

from laya_desktop import __version__
from laya_desktop.bench.results import Machine

_PACKAGES = ("llama-cpp-python", "uvloop", "httptools")


def describe() -> Machine:
    """This machine."""
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        processor=_processor(),
        cores_physical=psutil.cpu_count(logical=False),
        cores_logical=os.cpu_count(),
        ram_bytes=psutil.virtual_memory().total,
    )


def versions() -> dict[str, str]:
    """Ours, Python's, and those of the packages that matter for speed."""
    found = {"laya-desktop": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
