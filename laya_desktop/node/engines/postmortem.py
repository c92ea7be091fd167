"""Why a worker died, in words a person can act on. Pure: exit code and log lines in, error out."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Sequence

from laya_desktop.errors import LayaError

_OUT_OF_MEMORY = re.compile(
    r"out of memory|failed to allocate|unable to allocate|cudaMalloc failed|bad_alloc|MemoryError|cannot allocate"
    r"|insufficient memory|Thread creation failed",  # a thread's stack is what libgomp is refused under a limit
    re.IGNORECASE,
)
_ASSERTION = re.compile(r"GGML_ASSERT|Assertion .* failed|terminate called|what\(\):|\w*Error: |CUDA error")
_SMALLER = "Choose a smaller model or quantisation, lower max_seq_len or batch_size, or close other programs."
_REBUILD = (
    "This llama.cpp was built for another CPU. Reinstall it here with CMAKE_ARGS=-DGGML_NATIVE=OFF "
    "pip install --force-reinstall --no-binary llama-cpp-python llama-cpp-python."
)
_WINDOWS_CODES = {
    0xC0000005: "SIGSEGV",
    0xC000001D: "SIGILL",
    0xC0000409: "SIGABRT",
    0xC0000017: "out of memory",
}
_SIGNALS = {
    "SIGKILL": ("was killed (SIGKILL), often by the kernel when memory runs out", _SMALLER),
    "SIGILL": (
        "executed an instruction that this CPU does not have (SIGILL)",
        _REBUILD,
    ),
    "SIGBUS": (
        "lost access to its model file (SIGBUS)",
        "The file was changed, truncated or unmounted while in use. Restore it and load the model again.",
    ),
    "SIGSEGV": (
        "crashed in native code (SIGSEGV)",
        "Load it again; if that repeats, try the CPU or another file, and report the log lines.",
    ),
    "SIGABRT": ("gave up on an internal check (SIGABRT)", "Load it again; if that repeats, report the log lines."),
    "SIGTERM": ("was ended from outside (SIGTERM)", "Load it again."),
}


def explain_death(
    model: str,
    returncode: int | None,
    log_tail: Sequence[str],
    *,
    loading: bool,
    reason: str | None = None,
    oom_kill: bool = False,
) -> LayaError:
    """The error for a worker that ended without being asked to.

    Args:
        model: the model's name.
        returncode: as ``subprocess`` gives it: negative is a signal; None: unknown.
        log_tail: the last lines the worker printed.
        loading: it died before it was ready.
        reason: what the parent saw before it killed the worker itself, e.g. a garbled message.
        oom_kill: the kernel killed some process for want of memory while this one lived.

    Returns:
        Code ``out_of_memory``, ``worker_hung`` or ``worker_died``, and 503.
    """
    how, hint = _how(returncode) if reason is None else (reason, "Load it again; if that repeats, report the log.")
    telling = _telling_line(log_tail)
    code = "worker_hung" if reason is not None and reason.startswith("was hung") else "worker_died"
    if reason is not None and reason.startswith("ran out of memory"):
        hint, code = _SMALLER, "out_of_memory"
    elif reason is None and returncode is not None and oom_kill and signal_name(returncode) == "SIGKILL":
        how, hint, code = "was killed by the kernel because memory ran out (SIGKILL)", _SMALLER, "out_of_memory"
    elif telling and _OUT_OF_MEMORY.search(telling):
        how, hint = f"{how}: it ran out of memory" if "memory" not in how else how, _SMALLER
        code = "out_of_memory"
    doing = "while it was loading" if loading else "while it was in use"
    last = f" Its log says: {telling}" if telling else ""
    return LayaError(f"The worker of model '{model}' {how} {doing}.{last}", hint=hint, code=code, status=503)


def _how(returncode: int | None) -> tuple[str, str]:
    if returncode is None:
        return "stopped answering", "Load the model again."
    name = signal_name(returncode)
    if name in _SIGNALS:
        return _SIGNALS[name]
    if name is not None:
        return f"was ended by {name}", "Load the model again."
    return f"ended with exit code {returncode}", "Look at its log lines, then load the model again."


def signal_name(returncode: int) -> str | None:
    """``SIGKILL`` for -9; Windows' exception codes by their nearest signal; None for an ordinary exit."""
    if returncode < 0 and sys.platform != "win32":
        try:
            return signal.Signals(-returncode).name
        except ValueError:
            return f"signal {-returncode}"
    return _WINDOWS_CODES.get(returncode & 0xFFFFFFFF) if returncode else None


def _telling_line(log_tail: Sequence[str]) -> str | None:
    """The line that says most: memory first, then an assertion or an exception, else nothing."""
    for pattern in (_OUT_OF_MEMORY, _ASSERTION):
        for line in reversed(log_tail):
            if pattern.search(line):
                return line.strip()[:300]
    return None
