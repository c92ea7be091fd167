"""The JSON schema of configuration files, for editors. Pure but for ``main``, which writes the committed copy.

Run ``python -m laya_desktop.config.json_schema`` after a change of the schema; a test holds that the copy is current.
An editor with a YAML language server reads it after this line in a configuration:
``# yaml-language-server: $schema=laya-desktop.schema.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from laya_desktop.config.legacy import MATCH_KEYS
from laya_desktop.config.schema import NodeConfig
from laya_desktop.paths import find_shipped

FILE = "laya-desktop.schema.json"
_ONE_AIM = [
    {"required": ["target"], "properties": {"target": {"type": "string"}}},
    {"required": ["targets"], "properties": {"targets": {"minItems": 1}}},
]


def json_schema() -> dict[str, Any]:
    """The schema of a whole file, the short form included."""
    schema = NodeConfig.model_json_schema()
    parts = schema["$defs"]
    _tidy(schema)
    parts["MatchConfig"]["oneOf"] = [_has(rule) for rule in ("path", "prefix", "regex")]
    parts["RouteConfig"]["oneOf"] = _ONE_AIM
    parts["MatchConfig"]["dependentRequired"] = {"regex": ["use_regex"]}
    schema["properties"]["model"] = {
        "$ref": "#/$defs/ModelConfig",
        "deprecated": True,
        "description": "Short form: the one model. Write models: for more.",
    }
    schema["properties"]["route"] = _short_route(parts)
    for part in ("server", "log", "guard", "models", "upstreams", "routes", "model", "route"):
        value = schema["properties"].pop(part)
        about = value.pop("description", None) or parts[value["$ref"].rsplit("/", 1)[-1]]["description"]
        schema["properties"][part] = {"anyOf": [value, {"type": "null"}], "description": about}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Laya Desktop configuration",
    }


def render() -> str:
    """The schema as the text of its file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> None:
    """Write the committed copy."""
    Path(find_shipped("configs"), FILE).write_text(render(), encoding="utf-8")


def _has(rule: str) -> dict[str, Any]:
    return {"required": [rule], "properties": {rule: {"type": "string"}}}


def _short_route(parts: dict[str, Any]) -> dict[str, Any]:
    route, match = parts["RouteConfig"], parts["MatchConfig"]
    lifted = {key: match["properties"][key] for key in MATCH_KEYS}
    return {
        "type": "object",
        "additionalProperties": False,
        "deprecated": True,
        "description": "Short form: the one route, its match keys beside its target. Write routes: for more.",
        "properties": {**route["properties"], **lifted},
        "oneOf": _ONE_AIM,
    }


def _tidy(node: Any) -> None:
    """Drop the titles that pydantic makes from names, and line breaks in descriptions."""
    if isinstance(node, list):
        for child in node:
            _tidy(child)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("title"), str):
        del node["title"]
    if isinstance(node.get("description"), str):
        node["description"] = " ".join(node["description"].replace("``", "`").split())
    for child in node.values():
        _tidy(child)


if __name__ == "__main__":
    main()
