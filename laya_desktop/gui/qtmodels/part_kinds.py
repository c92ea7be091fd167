"""What the form editor knows of routes and models: the two ``PartKind`` values. Pure functions; no widgets."""

from __future__ import annotations

from typing import Any

from laya_desktop.config.parts import check_part
from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import Problem
from laya_desktop.gui.qtmodels import model_fields, route_fields
from laya_desktop.gui.qtmodels.model_fields import ModelFields
from laya_desktop.gui.qtmodels.part_editor import PartKind
from laya_desktop.gui.qtmodels.route_fields import RouteFields


def _parse_route(fields: RouteFields, config: NodeConfig, replacing: str | None) -> tuple[Any, list[Problem]]:
    part, problems = check_part("routes", route_fields.data_of(fields), config, replacing)
    return part, list(problems)


def _parse_model(fields: ModelFields, config: NodeConfig, replacing: str | None) -> tuple[Any, list[Problem]]:
    part, problems = check_part("models", model_fields.data_of(fields), config, replacing)
    return part, list(problems)


ROUTE_KIND: PartKind[RouteFields] = PartKind(
    section="routes",
    fields_of=route_fields.fields_of,
    find=NodeConfig.route,
    parse=_parse_route,
    put=NodeConfig.with_route,
    explain=lambda problems, fields: route_fields.problems_by_field(problems, fields.kind),
)
MODEL_KIND: PartKind[ModelFields] = PartKind(
    section="models",
    fields_of=model_fields.fields_of,
    find=NodeConfig.model,
    parse=_parse_model,
    put=NodeConfig.with_model,
    explain=lambda problems, _fields: model_fields.problems_by_field(problems),
)
