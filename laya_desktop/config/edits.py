"""Edits of a configuration, as values: every edit returns a new one, checked as a whole. Pure; any thread.

The methods of ``NodeConfig`` are made of these; nothing else calls them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeVar

from pydantic import BaseModel
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from laya_desktop.config.cross import Fault
from laya_desktop.config.problems import explain
from laya_desktop.errors import ConfigError, LayaError, Problem, near


class Named(Protocol):
    """A model, upstream or route."""

    @property
    def name(self) -> str:
        """Unique among its kind."""
        ...


class Targeting(Named, Protocol):
    """A route."""

    @property
    def all_names(self) -> tuple[str, ...]:
        """Names of the models and upstreams that it leads to."""
        ...


Item = TypeVar("Item", bound=Named)
Config = TypeVar("Config", bound=BaseModel)

_OURS: Final = "laya"
FORM = "The configuration"
"""The source named by errors that no file is to blame for."""


def edit(config: Config, **parts: Any) -> Config:
    """The configuration with these parts replaced.

    Raises:
        ConfigError: with every problem.
    """
    whole = {name: getattr(config, name) for name in type(config).model_fields} | parts
    try:
        return type(config)(**whole)
    except ValidationError as error:
        raise ConfigError(FORM, explain(error, type(config))) from None


def put(kind: str, items: tuple[Item, ...], item: Item, replacing: str | None) -> tuple[Item, ...]:
    """Append ``item``, or put it in the place of the one named ``replacing``."""
    if replacing is None:
        return (*items, item)
    _find(kind, items, replacing)
    return tuple(item if old.name == replacing else old for old in items)


def without(kind: str, items: tuple[Item, ...], name: str) -> tuple[Item, ...]:
    """All but the one of that name."""
    _find(kind, items, name)
    return tuple(item for item in items if item.name != name)


def refuse_if_used(kind: str, name: str, routes: Iterable[Targeting]) -> None:
    """Raise ``LayaError`` that names the routes which point at a model or upstream."""
    users = [f"'{r.name}'" for r in routes if name in r.all_names]
    if users:
        named = users[0] if len(users) == 1 else f"{', '.join(users[:-1])} and {users[-1]}"
        raise LayaError(
            f"The {kind} '{name}' is the target of the route{'s' if len(users) > 1 else ''} {named}.",
            hint="Give them another target or remove them first."
            if len(users) > 1
            else "Give it another target or remove it first.",
            code="target_in_use",
            status=409,
        )


def invalid(title: str, faults: Iterable[Fault], also: ValidationError | None = None) -> ValidationError:
    """Faults of ours as the error that pydantic merges with its own; ``also``: with these."""
    details = [_detail(loc, message) for loc, message in faults]
    if also is not None:
        details.extend(_again(e) for e in also.errors(include_url=False))
    return ValidationError.from_exception_data(title, details)


def _detail(loc: tuple[str | int, ...], message: str) -> InitErrorDetails:
    return InitErrorDetails(type=PydanticCustomError(_OURS, "{text}", {"text": message}), loc=loc, input=None)


def _again(error: Any) -> InitErrorDetails:
    if error["type"] == _OURS:  # pydantic takes no type back that it does not know by name
        return _detail(error["loc"], error["msg"])
    kept = InitErrorDetails(type=error["type"], loc=error["loc"], input=error.get("input"))
    if "ctx" in error:
        kept["ctx"] = error["ctx"]
    return kept


def _find(kind: str, items: Iterable[Named], name: str) -> None:
    names = [item.name for item in items]
    if name not in names:
        raise ConfigError(FORM, [Problem(f"No {kind[:-1]} '{name}'.{near(name, names)}", (kind,))])
