"""The short form of earlier users: it loads unchanged, mixes with the long form, and survives edits."""

from __future__ import annotations

import pytest

from laya_desktop.config.loader import load_text
from laya_desktop.config.render import render
from laya_desktop.config.schema import ModelConfig, NodeConfig, RouteConfig
from laya_desktop.errors import ConfigError

SHORT = """# mine
model:   # the one
  # its name
  name: my-llm-7b
  path: /data/models/my-llm-7b-ggml-4bit.bin
  device: auto

  batch_size: 1    # one
  max_seq_len: 512
  num_worker: 4
route:
  prefix: /v1/model    # everything below
  target: my-llm-7b-backend
"""
OTHER = ModelConfig.model_validate({"name": "other", "path": "o.gguf"})


def faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_text(text, "f")
    return [p.render("f") for p in caught.value.problems]


def changed(new: NodeConfig, text: str = SHORT) -> str:
    result = render(text, load_text(text), new)
    assert load_text(result) == new
    return result


def test_the_short_form_loads_as_one_model_and_one_route() -> None:
    config = load_text(SHORT)

    assert [(m.name, m.batch_size, m.num_worker) for m in config.models] == [("my-llm-7b", 1, 4)]
    (route,) = config.routes
    assert (route.name, route.match.prefix, route.target) == ("my-llm-7b", "/v1/model", "my-llm-7b")


def test_both_forms_mix_and_the_short_entry_comes_first() -> None:
    config = load_text(
        SHORT + "models:\n  - {name: b, path: b.gguf}\nroutes:\n  - {name: r, match: {path: /b}, target: b-backend}\n"
    )

    assert [m.name for m in config.models] == ["my-llm-7b", "b"]
    assert [(r.name, r.target) for r in config.routes] == [("my-llm-7b", "my-llm-7b"), ("r", "b")]


def test_a_model_that_is_really_called_backend_is_meant_by_that_name() -> None:
    config = load_text(
        "models: [{name: a, path: a}, {name: a-backend, path: b}]\n"
        "routes: [{name: r, match: {path: /a}, target: a-backend}]\n"
    )

    assert config.routes[0].target == "a-backend"


def test_a_made_up_route_name_never_collides() -> None:
    config = load_text(SHORT + "routes: [{name: my-llm-7b, match: {path: /b}, target: my-llm-7b}]\n")

    assert [r.name for r in config.routes] == ["my-llm-7b-2", "my-llm-7b"]


def test_faults_of_the_short_form_name_its_own_keys_and_lines() -> None:
    text = "model:\n  name: a\n  path: a\n  divice: cpu\nroute:\n  prefx: /x\n  target: b\n"

    assert faults(text) == [
        "f:4:3: model.divice: Unknown key 'divice'. Did you mean 'device'?",
        "f:6:3: route.prefx: Unknown key 'prefx'. Did you mean 'prefix'?",
        "f:7:3: route.target: No model or upstream 'b'. There is 'a'.",
    ]


def test_faults_of_a_list_beside_the_short_form_have_the_lists_own_index() -> None:
    found = faults("model: {name: a, path: a}\nmodels:\n  - {name: b, path: b, batch_size: 0}\n")

    assert found[0].startswith("f:3:24: models[0].batch_size: ")


def test_a_list_in_the_short_form_is_refused_clearly() -> None:
    assert "'model:' holds one model. Write 'models:' for a list." in faults("model: [{name: a, path: a}]")[0]


def test_a_changed_value_keeps_the_short_form_and_every_other_line() -> None:
    config = load_text(SHORT)
    model = config.models[0].model_copy(update={"batch_size": 8})

    text = changed(config.with_model(model, "my-llm-7b"))

    assert text == SHORT.replace("batch_size: 1 ", "batch_size: 8 ")


def test_a_renamed_model_keeps_the_short_form_and_the_routes_name() -> None:
    config = load_text(SHORT)
    model = config.models[0].model_copy(update={"name": "new"})

    text = changed(config.with_model(model, "my-llm-7b"))

    assert "\nmodel:" in text
    assert "  target: new\n" in text
    assert "  name: my-llm-7b\n" in text


def test_a_second_model_goes_into_a_list_beside_the_short_form() -> None:
    text = changed(load_text(SHORT).with_model(OTHER))

    assert text.startswith(SHORT)
    assert "models:\n  - name: other\n" in text


def test_what_the_short_form_cannot_hold_moves_into_the_long_form_with_its_comments() -> None:
    config = load_text(SHORT).with_model(OTHER)
    route = RouteConfig.model_validate({"name": "first", "match": {"path": "/f"}, "target": "other"})

    text = changed(config.with_route(route).move_route("my-llm-7b", 9))

    assert "model:" not in text.replace("models:", "")
    assert all(c in text for c in ("# mine", "# the one", "# its name", "# one", "# everything below"))


@pytest.mark.parametrize(
    "beside",
    [
        "",
        "routes: []\n",
        "routes:\n",
        "routes: [{name: r, match: {path: /b}, target: my-llm-7b}]\n",
        "routes:\n# above r\n- name: r\n  match: {path: /b}\n  target: my-llm-7b\n",
    ],
)
def test_the_long_form_takes_in_whatever_list_there_is(beside: str) -> None:
    text = SHORT + beside
    config = load_text(text)
    extra = RouteConfig.model_validate({"name": "first", "match": {"path": "/f"}, "target": "my-llm-7b"})
    moved = config.with_route(extra).move_route("first", 0)

    result = changed(moved, text)

    assert "\nroute:" not in result
    assert "# everything below" in result or "[{" in beside


def test_a_short_form_on_one_line_can_be_edited() -> None:
    text = "{model: {name: a, path: a}, route: {prefix: /x, target: a}}"
    config = load_text(text)

    assert changed(config.with_model(OTHER), text).startswith(text[:-1])
    assert "model:" not in changed(config.without_route("a").without_model("a"), text)


def test_the_short_entry_can_be_removed() -> None:
    config = load_text(SHORT)

    text = changed(config.without_route("my-llm-7b").without_model("my-llm-7b"))

    assert load_text(text) == NodeConfig()
    assert text.startswith("# mine\n")
