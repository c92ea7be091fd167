"""llama.cpp as a library: the pinned version, its log, its devices. Runs in the worker; holds no model.

The binding's struct layouts change between releases, so another version is refused before anything is called.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llama_cpp
import llama_cpp.llama_cpp as lib
from llama_cpp._ggml import libggml

from laya_desktop.node.engines.advice import LLAMA_CPP_PYTHON
from laya_desktop.node.engines.base import Device, EngineLoadError
from laya_desktop.node.engines.llama_log import CONT, DEBUG, INFO, WARN, LineJoiner, LoadLog, worth_keeping

_KINDS = {0: "cpu", 1: "gpu", 2: "igpu", 3: "accel"}
_STDERR, _MOST_PRINTED = 2, 8192
_joiner = LineJoiner()
_threshold = INFO
_skipping = False
_muted = False
_load_log = LoadLog()


def initialise() -> None:
    """Check the version, take over the log, start the backends. Idempotent.

    Raises:
        EngineLoadError: another version of llama-cpp-python is installed.
    """
    if llama_cpp.__version__ != LLAMA_CPP_PYTHON:
        raise EngineLoadError(
            f"llama-cpp-python {llama_cpp.__version__} is installed; Laya Desktop needs exactly {LLAMA_CPP_PYTHON}.",
            f"Run pip install llama-cpp-python=={LLAMA_CPP_PYTHON}.",
            code="wrong_llama_cpp",
        )
    lib.llama_log_set(_on_log, None)
    lib.llama_backend_init()


def version() -> str:
    """Both versions, for people."""
    return f"{lib.llama_version().decode()} (llama-cpp-python {llama_cpp.__version__})"


@contextmanager
def recorded_log() -> Iterator[LoadLog]:
    """Gather what the log says during a load."""
    global _load_log
    _load_log = LoadLog()
    yield _load_log


@contextmanager
def complaints() -> Iterator[list[str]]:
    """Gather what llama.cpp says in its log or prints, and let none of it out: callers' texts must not get there.

    The list is filled when the block ends.
    """
    global _muted
    lines: list[str] = []
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    with tempfile.TemporaryFile() as file, recorded_log() as log:
        os.dup2(file.fileno(), _STDERR)
        _muted = True
        try:
            yield lines
        finally:
            _muted = False
            os.dup2(kept, _STDERR)
            os.close(kept)
            file.seek(0)
            lines += [*file.read(_MOST_PRINTED).decode("utf-8", "replace").splitlines(), *log.errors]


def quieten() -> None:
    """After the load only warnings are printed: nothing is written per step."""
    global _threshold
    _threshold = WARN


@lib.llama_log_callback  # type: ignore[untyped-decorator]
def _on_log(level: int, text: bytes, _user_data: object) -> None:
    global _skipping
    if level == DEBUG or (level == CONT and _skipping):  # thousands of lines a load
        _skipping = True
        return
    _skipping = False
    for line_level, line in _joiner.feed(level, text.decode("utf-8", "replace")):
        _load_log.note(line, error=line_level > WARN)
        if line_level >= _threshold and not _muted and worth_keeping(line):
            sys.stderr.write(f"{line}\n")


def _function(name: str, restype: Any, *argtypes: Any) -> Any:
    function = getattr(libggml, name)
    function.restype, function.argtypes = restype, list(argtypes)
    return function


_dev_count = _function("ggml_backend_dev_count", ctypes.c_size_t)
_dev_get = _function("ggml_backend_dev_get", ctypes.c_void_p, ctypes.c_size_t)
_dev_name = _function("ggml_backend_dev_name", ctypes.c_char_p, ctypes.c_void_p)
_dev_description = _function("ggml_backend_dev_description", ctypes.c_char_p, ctypes.c_void_p)
_dev_type = _function("ggml_backend_dev_type", ctypes.c_int, ctypes.c_void_p)
_dev_memory = _function(
    "ggml_backend_dev_memory",
    None,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
)


def devices() -> list[tuple[int, Device]]:
    """Handle and description of every device of ggml's registry.

    The CPU's memory is left out: ggml reports free = total for it.
    """
    found = []
    for i in range(_dev_count()):
        handle = _dev_get(i)
        kind = _KINDS.get(_dev_type(handle))
        if kind is None:
            continue
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        if kind in ("gpu", "igpu"):
            _dev_memory(handle, ctypes.byref(free), ctypes.byref(total))
        device = Device(
            name=_dev_name(handle).decode(),
            description=_dev_description(handle).decode("utf-8", "replace").strip(),
            kind=kind,  # type: ignore[arg-type]
            free_bytes=free.value or None,
            total_bytes=total.value or None,
        )
        found.append((handle, device))
    return found


def gpus() -> list[tuple[int, Device]]:
    """Devices that layers may be offloaded to: dedicated GPUs, or an integrated one where there is no other."""
    found = devices()
    return [d for d in found if d[1].kind == "gpu"] or [d for d in found if d[1].kind == "igpu"][:1]
