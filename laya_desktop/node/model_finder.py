"""Models that are on this machine already, whoever downloaded them. Read-only; blocking, so a pool thread.

A search is bounded in time and in entries, follows links without running in circles, and opens nothing but headers and
small JSON files. What is no model to chat with is left out: projectors of vision models, adapters, bare vocabularies,
encoders. A split model is one model. A file that is a model but cannot be loaded (cut off, a part missing) is shown
with the reason.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from laya_desktop.errors import LayaError
from laya_desktop.node.engines import gguf, hf_folder
from laya_desktop.node.engines.gguf_reader import GgufError, Header, read_header
from laya_desktop.node.model_places import Place
from laya_desktop.state.snapshot import FoundModel, ModelFileInfo

log = logging.getLogger(__name__)

MAX_SECONDS = 20.0
MAX_ENTRIES = 200_000
MAX_DEPTH = 8
_JSON_LIMIT = 1024**2
_PART = re.compile(r"-(\d{5})-of-(\d{5})$")
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_OLLAMA_HOST, _OLLAMA_USER = "registry.ollama.ai", "library"
_NOT_MODELS = {"adapter", "mmproj", "imatrix", "vocab", "controlvector"}
_TALKERS = ("CausalLM", "LMHead", "ConditionalGeneration")


class _SpentError(Exception):
    """The search has used up its time or its entries."""


class _Budget:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ends_s = clock() + MAX_SECONDS
        self._left = MAX_ENTRIES

    def spend(self) -> None:
        """Count one directory entry or one file opened."""
        self._left -= 1
        if self._left < 0 or self._clock() > self._ends_s:
            raise _SpentError


@dataclass(frozen=True)
class _Candidate:
    """Something that looks like a model, before it is read."""

    path: Path
    name: str
    source: str
    folder: bool = False


class ModelFinder:
    """Searches, and remembers what it has read of files that did not change."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[tuple[str, int, int], FoundModel | None] = {}

    def find(self, places: Iterable[Place]) -> tuple[FoundModel, ...]:
        """Every model in these places, by source and name; a file reached in two ways is listed once."""
        budget = _Budget(self._clock)
        found: dict[tuple[int, int], FoundModel] = {}
        visited: set[tuple[int, int]] = set()
        try:
            for place in places:
                for candidate in _candidates(place, budget, visited):
                    budget.spend()
                    self._look(candidate, found)
        except _SpentError:
            log.warning(
                "The search for models was stopped after %g s or %d files; what was found so far is listed",
                MAX_SECONDS,
                MAX_ENTRIES,
            )
        return tuple(sorted(found.values(), key=lambda m: (m.source, m.name.lower(), m.path)))

    def _look(self, candidate: _Candidate, found: dict[tuple[int, int], FoundModel]) -> None:
        try:
            status = candidate.path.stat()
        except OSError:
            return  # a dangling link, or gone since
        identity = (status.st_dev, status.st_ino)
        if identity in found or (not candidate.folder and not stat.S_ISREG(status.st_mode)):
            return
        key = (f"{candidate.source}\0{candidate.path}", status.st_mtime_ns, status.st_size)
        if key not in self._known or (self._known[key] is not None and self._known[key].problem):  # type: ignore[union-attr]
            self._known[key] = _read_folder(candidate) if candidate.folder else _read_file(candidate, status.st_size)
        if (model := self._known[key]) is not None:
            found[identity] = model


def _candidates(place: Place, budget: _Budget, visited: set[tuple[int, int]]) -> Iterator[_Candidate]:
    if place.kind == "ollama":
        yield from _in_ollama(place, budget)
    elif place.kind == "hub":
        yield from _in_hub(place, budget, visited)
    else:
        yield from _in_tree(place.path, place.source, budget, visited)


def _in_tree(
    root: Path, source: str, budget: _Budget, visited: set[tuple[int, int]], title: str | None = None, depth: int = 0
) -> Iterator[_Candidate]:
    """GGUF files and model folders below ``root``; every folder is entered once, however many links lead to it."""
    entries = _entries(root, budget, visited)
    names = {e.name for e in entries}
    if hf_folder.CONFIG in names and any(n.endswith(".safetensors") for n in names):
        yield _Candidate(root, title or root.name, source, folder=True)
    for entry in entries:
        if entry.name.lower().endswith(".gguf"):
            yield _Candidate(Path(entry.path), Path(entry.name).stem, source)
        elif depth < MAX_DEPTH and not entry.name.startswith(".") and _is_folder(entry):
            yield from _in_tree(Path(entry.path), source, budget, visited, None, depth + 1)


def _in_hub(place: Place, budget: _Budget, visited: set[tuple[int, int]]) -> Iterator[_Candidate]:
    """Hugging Face's cache: ``models--ORG--NAME/snapshots/REVISION``; of several revisions the current one."""
    for entry in _entries(place.path, budget, visited):
        if not entry.name.startswith("models--") or not _is_folder(entry):
            continue
        snapshots = Path(entry.path, "snapshots")
        current = _text(Path(entry.path, "refs", "main"))
        folder = snapshots / current if current and re.fullmatch(r"[0-9a-f]{6,64}", current) else None
        if folder is None or not folder.is_dir():
            revisions = [e for e in _entries(snapshots, budget, visited) if _is_folder(e)]
            folder = max((Path(e.path) for e in revisions), key=_modified, default=None)
        if folder is not None:
            title = entry.name.removeprefix("models--").replace("--", "/")
            yield from _in_tree(folder, place.source, budget, visited, title)


def _in_ollama(place: Place, budget: _Budget) -> Iterator[_Candidate]:
    """Ollama's store: ``manifests/HOST/USER/MODEL/TAG`` names a blob by its digest."""
    root = place.path / "manifests"
    for manifest in _files(root, budget, set(), depth=0):
        parts = manifest.relative_to(root).parts
        if len(parts) != 4:
            continue
        layers = _json(manifest).get("layers")
        digests = [
            layer.get("digest")
            for layer in (layers if isinstance(layers, list) else [])
            if isinstance(layer, dict) and layer.get("mediaType") == _OLLAMA_MODEL
        ]
        if digests and re.fullmatch(r"sha256:[0-9a-f]{64}", str(digests[0])):
            host, user, model, tag = parts
            where = "" if (host, user) == (_OLLAMA_HOST, _OLLAMA_USER) else f"{user}/"
            where = where if host == _OLLAMA_HOST else f"{host}/{user}/"
            blob = place.path / "blobs" / str(digests[0]).replace(":", "-")
            yield _Candidate(blob, f"{where}{model}:{tag}", place.source)


def _files(root: Path, budget: _Budget, visited: set[tuple[int, int]], depth: int) -> Iterator[Path]:
    for entry in _entries(root, budget, visited):
        if _is_folder(entry):
            if depth < MAX_DEPTH:
                yield from _files(Path(entry.path), budget, visited, depth + 1)
        elif not entry.name.startswith("."):
            yield Path(entry.path)


def _entries(folder: Path, budget: _Budget, visited: set[tuple[int, int]]) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; nothing where it was visited, cannot be read or is none."""
    try:
        status = folder.stat()
        if not stat.S_ISDIR(status.st_mode) or (status.st_dev, status.st_ino) in visited:
            return []
        visited.add((status.st_dev, status.st_ino))
        entries = []
        with os.scandir(folder) as listing:
            for entry in listing:
                budget.spend()
                entries.append(entry)
    except OSError:
        return []
    return sorted(entries, key=lambda e: e.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links in a circle
        return False


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() if path.stat().st_size < _JSON_LIMIT else None
    except (OSError, ValueError):
        return None


def _json(path: Path) -> dict[str, object]:
    try:
        value = json.loads(_text(path) or "")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _read_file(candidate: _Candidate, size_bytes: int) -> FoundModel | None:
    """A GGUF file, or None where it is no model of its own."""
    part = _PART.search(candidate.name)
    if "mmproj" in candidate.name.lower() or (part is not None and int(part[1]) != 1):
        return None
    name = _PART.sub("", candidate.name)
    try:
        if _is_something_else(read_header(candidate.path)):
            return None
    except (GgufError, OSError):
        pass  # inspect says what is wrong with it
    try:
        info = gguf.inspect(candidate.path)
    except LayaError as error:
        return _found(candidate, name, size_bytes, None, "llama_cpp", error)
    return _found(candidate, name, info.size_bytes, info, "llama_cpp", None)


def _is_something_else(header: Header) -> bool:
    kind, architecture = header.text("general.type"), header.text("general.architecture") or ""
    adapter = header.text("adapter.type") is not None
    empty = not header.tensors and (header.number("split.count") or 1) <= 1
    return empty or adapter or kind in _NOT_MODELS or architecture in ("clip", "controlvector", "imatrix")


def _read_folder(candidate: _Candidate) -> FoundModel | None:
    """A Hugging Face model folder, or None where its model does not generate text."""
    config = _json(candidate.path / hf_folder.CONFIG)
    made_for = config.get("architectures")
    names = [str(n) for n in made_for] if isinstance(made_for, list) else []
    if config.get("is_encoder_decoder") or not any(mark in name for name in names for mark in _TALKERS):
        return None
    try:
        info = hf_folder.inspect(candidate.path)
    except LayaError as error:
        weights = (p for p in candidate.path.glob("*.safetensors") if p.is_file())
        size_bytes = sum(p.stat().st_size for p in weights)
        return _found(candidate, candidate.name, size_bytes, None, "transformers", error)
    return _found(candidate, candidate.name, info.size_bytes, info, "transformers", None)


def _found(
    candidate: _Candidate, name: str, size_bytes: int, info: ModelFileInfo | None, engine: str, error: LayaError | None
) -> FoundModel:
    problem = str(error) if error is not None else None
    return FoundModel(str(candidate.path), name, candidate.source, size_bytes, info, engine, problem)
