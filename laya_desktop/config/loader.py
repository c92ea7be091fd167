"""Text or form data to a checked ``NodeConfig``, with every problem at once. Pure but for ``read_bytes``; any thread.

Nothing here writes, and nothing keeps a configuration that was refused.
"""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from laya_desktop.config import legacy, migrations
from laya_desktop.config.cross import Reference, cross_faults, references
from laya_desktop.config.problems import explain, is_secret
from laya_desktop.config.reader import MAX_BYTES, Document, UnreadableYamlError, read
from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import ConfigError, Problem, near

Loc = tuple[str | int, ...]
FORM = "form"
"""The source named where the data came from a form."""

BOM = "\ufeff"


def load_text(text: str, source: str | Path = "text") -> NodeConfig:
    """Parse YAML text.

    Raises:
        ConfigError: with every problem and its line and column.
    """
    return parse(text, source)[0]


def parse(text: str, source: str | Path) -> tuple[NodeConfig, Document, legacy.Places]:
    """Like ``load_text``, with the places of all keys."""
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise ConfigError(source, [Problem("A configuration is 1 MiB at most. This is not one.")])
    try:
        document = read(text.removeprefix(BOM))
    except UnreadableYamlError as error:
        raise ConfigError(source, [error.problem]) from None
    if not isinstance(document.data, dict | None):
        problem = Problem("A configuration is made of 'key: value' lines, e.g. 'models:'.", line=1, column=1)
        raise ConfigError(source, [problem])
    config, places, problems = _validate(document.data or {}, document)
    if problems or config is None:
        raise ConfigError(source, problems)
    return config, document, places


def check_form(data: dict[str, Any]) -> NodeConfig:
    """A whole configuration from plain data, in the long or the short form.

    Raises:
        ConfigError: with every problem; no lines.
    """
    config, _, problems = _validate(data, None)
    if problems or config is None:
        raise ConfigError(FORM, problems)
    return config


def read_bytes(path: Path) -> tuple[bytes, os.stat_result]:
    """The file's bytes and its status, both of the same open file.

    Raises:
        ConfigError: no such file, not a file, too large, not readable.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError(path, [Problem("This is not a regular file. Name a YAML file.")])
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(path, [Problem(f"There is no such file.{_near_file(path)}")]) from None
    except IsADirectoryError:
        raise ConfigError(path, [Problem("This is a folder. Name a YAML file inside it.")]) from None
    except OSError as error:
        raise ConfigError(path, [Problem(f"It cannot be read: {error.strerror}. Check its permissions.")]) from None
    if len(content) > MAX_BYTES:
        raise ConfigError(path, [Problem("A configuration is 1 MiB at most. This is not one.")])
    return content, status


def decode(content: bytes, source: str | Path) -> str:
    """UTF-8 text, its line ends as they are.

    Raises:
        ConfigError: not UTF-8, with the line.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise ConfigError(source, [Problem("Not UTF-8 text. Save the file as UTF-8.", (), line, column)]) from None


def _near_file(path: Path) -> str:
    try:
        names = [p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml")][:500]
    except OSError:
        return f" The folder '{path.parent}' does not exist." if not path.parent.exists() else ""
    return near(path.name, names)


def _validate(
    data: dict[str, Any], document: Document | None
) -> tuple[NodeConfig | None, legacy.Places, list[Problem]]:
    newer = migrations.check_version(data)
    if newer is not None:
        return None, legacy.Places(), [_placed(newer, legacy.Places(), document)]
    long, places, problems = legacy.expand(migrations.migrate(data))
    problems = [*(_discreet(p, document) for p in (document.problems if document else ())), *problems]
    config: NodeConfig | None = None
    try:
        config = NodeConfig.model_validate(_without_empty_parts(long))
    except ValidationError as error:
        written = None if document is None else document.written
        found = explain(error, NodeConfig, None if written is None else _Written(written, places))
        seen = {(p.loc, p.message) for p in found}
        found += [Problem(m, loc) for loc, m in raw_cross_faults(long) if (loc, m) not in seen]
        problems += [_placed(p, places, document) for p in found if not _reported(p, document, places)]
    problems = [_placed(p, legacy.Places(), document) if p.line is None else p for p in problems]
    return config, places, sorted(problems, key=lambda p: (p.line or 0, p.column or 0))


class _Written(dict[Loc, str]):
    """The written text of plain values, looked up by the path of the long form."""

    def __init__(self, written: dict[Loc, str], places: legacy.Places) -> None:
        super().__init__(written)
        self._places = places

    def get(self, key: Loc, default: Any = None) -> Any:
        return super().get(self._places.written(key), default)


def _discreet(problem: Problem, document: Document | None) -> Problem:
    """The reader knows no schema, so it repeats the values that it doubts: not where that is a secret."""
    if document is None or problem.loc not in document.doubtful or not is_secret(problem.loc):
        return problem
    return replace(problem, message="This value is read in more than one way. Put it in quotes.")


def _without_empty_parts(long: dict[str, Any]) -> dict[str, Any]:
    """A top-level key with nothing behind it (all of it commented out) means the default."""
    return {key: value for key, value in long.items() if value is not None or key not in NodeConfig.model_fields}


def _reported(problem: Problem, document: Document | None, places: legacy.Places) -> bool:
    """True where the reader already said that the value cannot be trusted."""
    return document is not None and places.written(problem.loc) in document.doubtful


def _placed(problem: Problem, places: legacy.Places, document: Document | None) -> Problem:
    loc = places.written(problem.loc)
    if document is None:
        return Problem(problem.message, loc)
    line, column = document.place(loc)
    return Problem(problem.message, loc, line, column)


def raw_cross_faults(long: dict[str, Any]) -> list[tuple[Loc, str]]:
    """What spans several parts, as far as unchecked data tells."""

    def texts(kind: str, key: str) -> list[str | None]:
        items = long.get(kind)
        values = [i.get(key) if isinstance(i, dict) else getattr(i, key, None) for i in _items(items)]
        return [v if isinstance(v, str) else None for v in values]

    routes = list(zip(texts("routes", "name"), map(_references, _items(long.get("routes"))), strict=True))
    aliases = [_aliases(model) for model in _items(long.get("models"))]
    return cross_faults(texts("models", "name"), texts("upstreams", "name"), routes, aliases)


def _references(route: Any) -> list[Reference]:
    return references(route) if isinstance(route, dict) else getattr(route, "references", [])


def _aliases(model: Any) -> list[str | None]:
    found = model.get("aliases") if isinstance(model, dict) else getattr(model, "aliases", ())
    return [a if isinstance(a, str) else None for a in _items(found)]


def _items(items: Any) -> list[Any]:
    return list(items) if isinstance(items, list | tuple) else []
