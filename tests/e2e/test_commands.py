"""The command line as a user types it, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.helpers.engine_harness import demo_model
from tests.helpers.gguf_writer import write_gguf

ROOT = Path(__file__).resolve().parents[2]


def laya(*args: str, home: Path, timeout_s: float = 90) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"LAYA_HOME": str(home)}
    command = [sys.executable, "-m", "laya_desktop", *args]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=timeout_s, cwd=ROOT)


@pytest.mark.e2e
def test_demo_prints_one_json_line_from_the_real_model(tmp_path: Path) -> None:
    done = laya("demo", "--exit-after-reply", home=tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    reply = json.loads(line)
    assert len(reply["reply"]) > 10
    assert reply["route"]
    assert 0 < reply["routing_us"] < 1e6
    assert 0 < reply["ttft_s"] < 60
    assert reply["decode_tokens_per_s"] > 0
    assert reply["completion_tokens"] > 1
    assert reply["device"]


def test_serve_answers_and_ends_on_sigterm(tmp_path: Path) -> None:
    env = os.environ | {"LAYA_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "laya_desktop", "serve", "configs/demo.yaml", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env, cwd=ROOT
    ) as p:
        try:
            assert p.stdout is not None
            url = p.stdout.readline().split()[-1]
            with urllib.request.urlopen(f"{url}/health", timeout=10) as response:
                assert json.load(response)["status"] == "ok"
            p.send_signal(signal.SIGTERM)
            assert p.wait(15) == 0
        finally:
            p.kill()


def test_without_a_display_the_window_command_says_so_and_serves(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    env["LAYA_HOME"] = str(tmp_path)
    command = [sys.executable, "-m", "laya_desktop", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=ROOT) as p:
        try:
            assert p.stdout is not None
            assert p.stderr is not None
            assert "http://127.0.0.1:" in p.stdout.readline()
            p.send_signal(signal.SIGINT)
            assert p.wait(15) == 0
            assert "no display" in p.stderr.read()
        finally:
            p.kill()


def test_the_core_runs_where_qt_is_not_installed(tmp_path: Path) -> None:
    blocker = "import sys; sys.modules['PySide6'] = None; sys.modules['pyqtgraph'] = None; "
    code = blocker + "from laya_desktop.cli import main; sys.exit(main(['check', 'configs/demo.yaml']))"
    env = os.environ | {"LAYA_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_check_reports_every_problem_with_its_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(
        "version: 1\nmodels:\n  - name: a\n    path: /x.gguf\n    batchsize: 2\n"
        "routes:\n  - name: r\n    match: {prefix: /a}\n    target: b\n"
    )
    done = laya("check", str(bad), home=tmp_path)
    assert done.returncode == 1
    assert f"{bad}:5:5" in done.stderr
    assert "batch_size" in done.stderr
    assert f"{bad}:9:" in done.stderr
    assert "'b'" in done.stderr


def test_route_names_the_winner_and_why_the_others_lost(tmp_path: Path) -> None:
    done = laya("route", "configs/demo.yaml", "POST", "/v1/model/chat/completions", "--json", home=tmp_path)
    assert done.returncode == 0, done.stderr
    explanation = json.loads(done.stdout)
    assert explanation["winner"]
    assert explanation["target"] == "smollm2-135m"
    assert len([c for c in explanation["candidates"] if c["won"]]) == 1
    assert laya("route", "configs/demo.yaml", "GET", "/nowhere", home=tmp_path).returncode == 1


@pytest.mark.parametrize("args", [("serve", "missing.yaml"), ("check", "missing.yaml"), ("missing.yaml",)])
def test_a_missing_file_is_one_clear_line(tmp_path: Path, args: tuple[str, ...]) -> None:
    done = laya(*args, home=tmp_path)
    assert done.returncode == 1
    assert "missing.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_models_lists_what_other_programs_downloaded(tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    write_gguf(folder / "mine.gguf")
    config = tmp_path / "laya.yaml"
    config.write_text("version: 1\nmodel_folders: [more]\n")
    listed = json.loads(laya("models", str(config), "--json", home=tmp_path).stdout)
    assert [m["name"] for m in listed if m["source"] == "your folders"] == ["mine"]
    assert str(folder / "mine.gguf") in laya("models", str(config), home=tmp_path).stdout


@pytest.mark.e2e
def test_bench_measures_the_real_model_and_keeps_the_result(tmp_path: Path) -> None:
    done = laya(
        "bench", "configs/demo.yaml", "--concurrency", "1,2", "--requests", "3", "--max-tokens", "8", "--prompt-tokens",
        "48", "--json", "--save", home=tmp_path, timeout_s=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    routing, model = result["series"]
    assert [p["concurrency"] for p in routing["points"]] == [p["concurrency"] for p in model["points"]] == [1, 2]
    for point in model["points"]:
        assert (point["requests"], point["faults"], point["completion_tokens"]) == (3, [], 24)
        assert abs(point["prompt_tokens"] - 48) <= 4
        assert 0 < point["ttft_ms"]["p50"] <= point["latency_ms"]["p50"]
        assert point["tokens_per_s"] > 0
        assert point["ram_peak_bytes"] > 100_000_000
    assert (tmp_path / "state" / "benchmarks" / f"{result['result_id']}.json").is_file()


def test_estimate_takes_the_cache_type_and_refuses_what_cannot_work(tmp_path: Path) -> None:
    def cache(*more: str) -> int:
        done = laya("estimate", demo_model(), "--device", "cpu", "--json", *more, home=tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["kv_cache_bytes"]

    assert cache("--kv-type", "q8_0") / cache() == pytest.approx(34 / 64, rel=0.01)
    wrong = laya("estimate", demo_model(), "--kv-type", "q8_0", "--flash-attention", "off", home=tmp_path)
    assert wrong.returncode == 1
    assert "kv_type: A KV cache of type q8_0 needs flash attention, which is off." in wrong.stderr
