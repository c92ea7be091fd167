"""What is the PyTorch engine's own: prefixes, batches, special tokens, refusals, devices. With a tiny model."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from laya_desktop.node.engines import worker_main
from laya_desktop.node.engines.base import EngineLoadError, EngineParams, Finished, Refused, Sampling, Started
from laya_desktop.node.engines.worker_main import create_engine
from tests.helpers.engine_harness import DirectHarness, Talk, demo_model
from tests.helpers.tiny_transformer import tiny_model

GREEDY = Sampling(temperature=0)
STORY = "Once upon a time there was a little"
PROMPTS = (STORY, "Emojis: 🙂 🎉 ", "The sea is", "red green blue red green")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_model(tmp_path_factory)


def params(path: str, **fields: object) -> EngineParams:
    defaults: dict[str, object] = {"device": "cpu", "slots": 2, "max_seq_len": 256, "threads": 1}
    return EngineParams("m", path, engine="transformers", **(defaults | fields))  # type: ignore[arg-type]


@pytest.fixture
def talk(folder: str) -> Iterator[Talk]:
    harness = DirectHarness(create_engine("transformers"), params(folder, slots=4))
    yield Talk(harness)
    harness.close()


def load_error(path: Path | str, **fields: object) -> EngineLoadError:
    engine = create_engine("transformers")
    with pytest.raises(EngineLoadError) as caught:
        engine.load(params(str(path), **fields), lambda _progress: None)
    engine.close()
    assert caught.value.hint
    return caught.value


def copy(folder: str, to: Path, **config: object) -> Path:
    """The tiny model again, with changed configuration."""
    shutil.copytree(folder, to)
    path = to / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    return to


def test_slots_say_together_what_they_say_alone(talk: Talk) -> None:
    seeds = [Sampling(temperature=0.9, seed=i) for i in range(2)]
    asked = [{"prompt": p, "max_tokens": 20 + 5 * i, "sampling": GREEDY} for i, p in enumerate(PROMPTS[:2])]
    asked += [{"prompt": p, "max_tokens": 12, "sampling": s} for p, s in zip(PROMPTS[2:], seeds, strict=True)]
    alone = [talk.say(**fields)[0] for fields in asked]
    running = [talk.give(**fields) for fields in asked]
    talk.wait_over(*running)
    assert [talk.text(r) for r in running] == alone


def test_joining_and_leaving_disturb_nobody(talk: Talk) -> None:
    alone, _ = talk.say(prompt=STORY, max_tokens=60, sampling=GREEDY)
    long = talk.give(prompt=STORY, max_tokens=60, sampling=GREEDY)
    for count, prompt in enumerate(PROMPTS[1:], start=1):
        talk.harness.wait(lambda count=count: len(talk.deltas(long)) >= 8 * count)  # type: ignore[misc]
        guest = talk.give(prompt=prompt, max_tokens=30, sampling=GREEDY)
        talk.harness.wait(lambda guest=guest: len(talk.deltas(guest)) >= 3)  # type: ignore[misc]
        if count % 2:
            talk.harness.cancel(guest)
    talk.wait_over(long)
    assert talk.text(long) == alone


def test_a_shared_prefix_is_not_computed_again(talk: Talk) -> None:
    prompt = [20 + i for i in range(60)]
    first, fresh = talk.say(prompt=prompt, max_tokens=8, sampling=GREEDY)
    again, reused = talk.say(prompt=prompt, max_tokens=8, sampling=GREEDY)
    _, longer = talk.say(prompt=[*prompt, 7, 8, 9], max_tokens=1, sampling=GREEDY)
    _, other = talk.say(prompt=[9, *prompt], max_tokens=1, sampling=GREEDY)
    assert (fresh.cached_tokens, reused.cached_tokens, longer.cached_tokens, other.cached_tokens) == (0, 59, 60, 0)
    assert first == again


def test_a_conversation_continues_in_its_slot_beside_another(talk: Talk) -> None:
    other = talk.give(prompt=STORY, max_tokens=200, sampling=GREEDY)
    messages = [{"role": "user", "content": "colour word sea"}]
    text, first = talk.say(messages=messages, max_tokens=8, sampling=GREEDY)
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "red"}]
    _, second = talk.say(messages=messages, max_tokens=4, sampling=GREEDY)
    assert second.cached_tokens >= first.prompt_tokens
    talk.harness.cancel(other)


def test_long_prompts_are_prefilled_in_pieces_beside_decoding_slots(folder: str, tmp_path: Path) -> None:
    path = copy(folder, tmp_path / "long", max_position_embeddings=2048)
    harness = DirectHarness(create_engine("transformers"), params(str(path), max_seq_len=1536))
    talk = Talk(harness)
    chatting = talk.give(prompt=STORY, max_tokens=40, sampling=GREEDY)
    harness.wait(lambda: len(talk.deltas(chatting)) >= 2)
    long = talk.give(prompt=[20 + i % 50 for i in range(1300)], max_tokens=1, sampling=GREEDY)
    steps = 0
    while not talk.over(long):
        before, said = harness.stats().prefill_tokens, len(talk.deltas(chatting))
        harness.events += harness.engine.step()
        assert harness.stats().prefill_tokens - before <= 512
        assert len(talk.deltas(chatting)) == said + 1
        steps += 1
    assert steps == 3
    harness.close()


def test_control_tokens_that_a_user_types_are_letters(talk: Talk) -> None:
    def prompt_tokens(content: str) -> int:
        return talk.say(messages=[{"role": "user", "content": content}], max_tokens=1, sampling=GREEDY)[1].prompt_tokens

    assert prompt_tokens("<|im_end|>") >= prompt_tokens("") + 3
    assert talk.say(prompt="<|im_start|>", max_tokens=1)[1].prompt_tokens == 1


def test_a_template_that_fails_refuses_the_request(folder: str, tmp_path: Path) -> None:
    path = copy(folder, tmp_path / "bad")
    (path / "chat_template.jinja").write_text("{{ raise_exception('roles must alternate') }}")
    talk = Talk(DirectHarness(create_engine("transformers"), params(str(path))))
    refused = talk.refusal(messages=[{"role": "user", "content": "x"}])
    assert "roles must alternate" in refused.message
    (path / "chat_template.jinja").unlink()
    harness = DirectHarness(create_engine("transformers"), params(str(path)))
    assert not harness.loaded.has_chat_template
    assert any("ChatML" in note for note in harness.loaded.notes)
    assert Talk(harness).say(messages=[{"role": "user", "content": "x"}], max_tokens=1)[1].completion_tokens == 1


@pytest.mark.parametrize(
    ("sampling", "param"),
    [
        (Sampling(temperature=-1.0), "temperature"),
        (Sampling(top_p=float("nan")), "top_p"),
        (Sampling(repeat_penalty=0.0), "repeat_penalty"),
        (Sampling(logit_bias={10**9: 1.0}), "logit_bias"),
    ],
)
def test_values_that_cannot_be_used_are_refused(talk: Talk, sampling: Sampling, param: str) -> None:
    assert talk.refusal(prompt=STORY, sampling=sampling).param == param


def test_tokens_that_the_model_does_not_have_are_refused(talk: Talk) -> None:
    assert "token 99999" in talk.refusal(prompt=[1, 99_999]).message


def test_bias_and_penalties_act(talk: Talk) -> None:
    plain, _ = talk.say(prompt="Emojis: 🙂 🎉 🙂 🎉 ", max_tokens=16, sampling=GREEDY)
    punished = Sampling(temperature=0, frequency_penalty=2.0, presence_penalty=2.0, repeat_penalty=1.5)
    assert talk.say(prompt="Emojis: 🙂 🎉 🙂 🎉 ", max_tokens=16, sampling=punished)[0] != plain
    token = talk.harness.engine._prompts._encode("b", special=False)[0]  # type: ignore[attr-defined]
    biased = Sampling(temperature=0, logit_bias={token: 1000.0})
    assert talk.say(prompt=STORY, max_tokens=5, sampling=biased)[0] == "bbbbb"


def test_a_tight_top_k_or_top_p_is_greedy(talk: Talk) -> None:
    greedy, _ = talk.say(prompt=STORY, max_tokens=12, sampling=GREEDY)
    for sampling in (Sampling(top_k=1, seed=1), Sampling(top_p=1e-9, seed=2), Sampling(min_p=1.0, seed=3)):
        assert talk.say(prompt=STORY, max_tokens=12, sampling=sampling)[0] == greedy


def test_the_models_end_token_ends_the_answer(talk: Talk, folder: str) -> None:
    end = json.loads((Path(folder) / "config.json").read_text())["eos_token_id"]
    text, finished = talk.say(prompt=STORY, sampling=Sampling(temperature=0, logit_bias={end: 1000.0}))
    assert (text, finished.finish_reason, finished.completion_tokens) == ("", "stop", 0)


def test_a_failing_model_refuses_and_the_engine_goes_on(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = talk.harness.engine  # type: ignore[attr-defined]
    running = [talk.give(prompt=p, max_tokens=50, sampling=GREEDY) for p in PROMPTS[:2]]
    talk.harness.wait(lambda: all(len(talk.deltas(r)) > 2 for r in running))

    def broken(*_: object, **__: object) -> None:
        raise ValueError("shapes differ")

    with monkeypatch.context() as patch:
        patch.setattr(engine._open, "model", broken)
        talk.wait_over(*running)
    last = talk.last(running[0])
    assert isinstance(last, Refused)
    assert (last.status, last.code) == (500, "decode_failed")
    assert "shapes differ" in last.message
    assert engine.free_slots == 4
    assert isinstance(talk.say(prompt=STORY, max_tokens=3)[1], Finished)


def test_caches_that_cannot_be_joined_take_turns(folder: str, tmp_path: Path) -> None:
    sliding = {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 16}
    path = copy(folder, tmp_path / "sliding", **sliding)
    harness = DirectHarness(create_engine("transformers"), params(str(path)))
    talk = Talk(harness)
    alone = [talk.say(prompt=p, max_tokens=24, sampling=GREEDY)[0] for p in PROMPTS[:2]]
    running = [talk.give(prompt=p, max_tokens=24, sampling=GREEDY) for p in PROMPTS[:2]]
    talk.wait_over(*running)
    assert [talk.text(r) for r in running] == alone
    _, again = talk.say(prompt=PROMPTS[0] + " story", max_tokens=2, sampling=GREEDY)
    assert again.cached_tokens == 0, "a window has forgotten its beginning and cannot be rewound"


def test_a_context_beyond_the_models_own_is_cut_and_said(folder: str) -> None:
    harness = DirectHarness(create_engine("transformers"), params(folder, max_seq_len=4096))
    assert harness.loaded.max_seq_len == 512
    assert any("4,096" in note and "512" in note for note in harness.loaded.notes)
    assert "512" in Talk(harness).refusal(prompt=[30] * 600).message


@pytest.mark.parametrize("device", ["gpu", "gpu:3"])
def test_a_gpu_that_is_not_there_is_an_error(folder: str, device: str) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    error = load_error(folder, device=device)
    assert error.code == "no_gpu"
    assert device in error.message
    assert "CUDA" in str(error.hint)


def test_auto_says_which_device_it_took(folder: str) -> None:
    harness = DirectHarness(create_engine("transformers"), params(folder, device="auto"))
    assert "auto chose the" in str(harness.loaded.device_note)


def test_a_pickle_is_never_loaded(folder: str, tmp_path: Path) -> None:
    path = copy(folder, tmp_path / "m")
    (path / "model.safetensors").rename(path / "pytorch_model.bin")
    assert load_error(path).code == "pickled_weights"


def test_code_in_the_folder_is_never_run(folder: str, tmp_path: Path) -> None:
    auto_map = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}
    path = copy(folder, tmp_path / "m", model_type="evil", auto_map=auto_map)
    mark = tmp_path / "ran"
    (path / "evil.py").write_text(f"open({str(mark)!r}, 'w')\n")
    assert load_error(path).code == "unsupported_architecture"
    assert not mark.exists()


def test_missing_weights_are_an_error_not_noise(folder: str, tmp_path: Path) -> None:
    path = copy(folder, tmp_path / "m", num_hidden_layers=3)
    error = load_error(path)
    assert error.code == "bad_model_file"
    assert "layers.2" in error.message


def test_what_does_not_generate_text_is_refused(folder: str, tmp_path: Path) -> None:
    error = load_error(copy(folder, tmp_path / "m", architectures=["LlamaForSequenceClassification"]))
    assert error.code == "unsupported_architecture"
    assert "LlamaForSequenceClassification" in error.message
    assert load_error(Path(folder) / "config.json").code == "bad_model_file"


def test_without_pytorch_the_load_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "laya_desktop.node.engines.transformers_engine", None)
    with pytest.raises(EngineLoadError) as caught:
        worker_main.create_engine("transformers")
    assert caught.value.code == "package_missing"
    assert "pip install 'laya-desktop[torch]'" in str(caught.value.hint)


def test_started_comes_before_any_computing(talk: Talk) -> None:
    request_id = talk.give(prompt=STORY, max_tokens=1)
    assert [type(e) for e in talk.of(request_id)] == [Started]
    talk.harness.cancel(request_id)


@pytest.mark.e2e
@pytest.mark.slow
def test_a_gguf_is_unpacked_and_says_what_llama_says() -> None:
    pytest.importorskip("torch")
    harness = DirectHarness(create_engine("transformers"), params(demo_model(), threads=2))
    assert (harness.loaded.total_layers, harness.loaded.has_chat_template) == (30, True)
    messages = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]
    assert "Paris" in Talk(harness).say(messages=messages, max_tokens=8, sampling=GREEDY)[0]
    harness.close()


def test_a_worker_fetches_nothing(folder: str) -> None:
    """In a process of its own: the libraries read their settings when they are imported."""
    code = (
        "from laya_desktop.node.engines.worker_main import create_engine; create_engine('transformers'); "
        "import huggingface_hub.constants as c; print(c.HF_HUB_OFFLINE, c.HF_HUB_DISABLE_TELEMETRY)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "True"], folder
