"""``laya-desktop bench`` and its helper against a node with the fake engine: figures, refusals, cancelling, Tune."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from laya_desktop import bench_command, cli
from laya_desktop.bench import jobs, tune
from laya_desktop.bench.jobs import Finished, Measured, Part, Progress, RunJob, Tried, Tuned, TuneJob
from laya_desktop.bench.results import Scenario
from laya_desktop.bench.store import ResultStore
from laya_desktop.bench_command import Wanted
from laya_desktop.config.store import load_file
from laya_desktop.errors import LayaError
from tests.helpers.session import running
from tests.helpers.waiting import wait_for

CONFIG = """
    version: 1
    server: {port: 0}
    models:
      - {name: quick, path: "fake:tokens=500,itl_ms=1", engine: fake, batch_size: 4}
      - name: full
        path: "fake:tokens=500,itl_ms=20"
        engine: fake
        batch_size: 1
        queue: {max_waiting: 0}
"""


@pytest.fixture
def node(tmp_path, monkeypatch):
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    with running(tmp_path / "node.yaml", CONFIG) as session:
        yield session


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    path = tmp_path / "laya.yaml"
    path.write_text(dedent(CONFIG))
    return path


def measure(job: RunJob | TuneJob):
    said = []
    last = bench_command.run_helper(job, said.append)
    return last, said


def test_routing_and_a_model_are_measured_over_http(node):
    parts = (Part(Scenario.ROUTING, "/health", "/health"), Part(Scenario.SMALL, "quick"))
    job = RunJob(node.url, parts, (1, 3), requests=6, routing_requests=200, prompt_tokens=50, max_tokens=12,
                 watch_pid=os.getpid())  # fmt: skip
    last, said = measure(job)
    assert isinstance(last, Finished)
    routing, model = last.result.series
    assert [p.requests for p in routing.points] == [200, 200]
    assert [p.concurrency for p in model.points] == [1, 3]
    for point in model.points:
        assert (point.requests, point.failed, point.completion_tokens) == (6, 0, 72)
        assert point.ttft_ms is not None
        assert point.latency_ms is not None
        assert 0 < point.ttft_ms.p50 < point.latency_ms.p50
        assert point.routing_us is not None
        assert point.ram_peak_bytes
    assert len([m for m in said if isinstance(m, Measured)]) == 4
    assert {m.stage for m in said if isinstance(m, Progress)} == {"loading", "measuring"}


def test_an_open_loop_sends_at_its_rate(node):
    job = RunJob(node.url, (Part(Scenario.ROUTING, "/health", "/health"),), (2,), routing_requests=60, rate_per_s=200.0)
    last, _ = measure(job)
    (point,) = last.result.series[0].points
    assert point.requests == 60
    assert point.requests_per_s <= 210


def test_requests_that_are_refused_are_counted_with_the_reason(node):
    job = RunJob(node.url, (Part(Scenario.SMALL, "full"),), (4,), requests=8, max_tokens=10)
    last, _ = measure(job)
    (point,) = last.result.series[0].points
    assert point.requests + point.failed == 8
    assert point.requests >= 1
    assert {f.status for f in point.faults} == {429}
    assert "full" in point.faults[0].text


def test_an_unknown_model_is_a_problem_of_its_scenario_alone(node):
    parts = (Part(Scenario.ROUTING, "/health", "/health"), Part(Scenario.SMALL, "nobody"))
    last, _ = measure(RunJob(node.url, parts, (1,), routing_requests=10))
    routing, model = last.result.series
    assert routing.points
    assert model.problem is not None
    assert "nobody" in model.problem


def test_nobody_listening_is_said_with_the_way_out():
    with pytest.raises(LayaError, match="Start the node"):
        measure(RunJob("http://127.0.0.1:9", (Part(Scenario.ROUTING, "/health", "/health"),), (1,)))


def test_the_helper_goes_when_its_input_closes_and_the_node_stops_working(node):
    job = RunJob(node.url, (Part(Scenario.SMALL, "quick"),), (2,), requests=100, max_tokens=400)
    helper = subprocess.Popen(
        jobs.helper_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=jobs.helper_environment()
    )
    assert helper.stdin is not None
    assert helper.stdout is not None
    try:
        helper.stdin.write(jobs.line(job))
        helper.stdin.flush()
        node.until(lambda s: s.running == 2)
        helper.stdin.close()
        assert helper.wait(10) == 3
        node.until(lambda s: s.running == 0 and s.waiting == 0)
    finally:
        helper.kill()
        helper.wait()
        helper.stdout.close()


def test_tune_measures_every_setting_on_nodes_of_its_own(file, tmp_path):
    document = load_file(file)
    job = tune.job_for(document.config, document.folder, "quick", concurrency=2, requests=4, seconds=3.0, max_tokens=8)
    last, said = measure(job)
    assert isinstance(last, Tuned)
    trials = last.result.trials
    assert trials[0].setting.batch_size == 4
    assert {t.setting.batch_size for t in trials} == {1, 2, 4}
    assert all(t.tokens_per_s for t in trials), trials
    assert [m.trial.setting for m in said if isinstance(m, Tried)] == [t.setting for t in trials]
    assert last.result.drift is not None
    assert not [p for p in psutil.Process().children(recursive=True) if "serve" in p.cmdline()]


def test_the_command_prints_a_table_saves_and_exits_0(file):
    file.write_text(file.read_text().partition("  - name: full")[0])
    out, progress = [], []
    code = bench_command.bench(
        Wanted(file, concurrency=(1, 2), requests=4, max_tokens=6, seconds=5, save=True), progress.append, out.append
    )
    assert code == 0
    (text,) = out
    assert "Routing alone: /health" in text
    assert "Small model: quick" in text
    assert "•" in text
    assert len(ResultStore().load()) == 1
    assert any("measuring quick, 2 at once" in line for line in progress)


def test_the_command_exits_1_where_requests_failed_and_json_has_them(file):
    out = []
    wanted = Wanted(file, scenario="small", model="full", concurrency=(4,), requests=8, max_tokens=6, json=True)
    assert bench_command.bench(wanted, lambda _text: None, out.append) == 1
    (point,) = json.loads(out[0])["series"][0]["points"]
    assert point["faults"][0]["status"] == 429


def test_ctrl_c_ends_node_and_helper_with_130(file, tmp_path):
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "laya_desktop", "bench", str(file), "--scenario", "small", "--model", "quick",
               "--requests", "500", "--max-tokens", "400"]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root, start_new_session=True
    ) as process:
        watchdog = threading.Timer(40, process.kill)
        watchdog.start()
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if "measuring" in line:
                    break
            children = psutil.Process(process.pid).children(recursive=True)
            assert children
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
            assert process.wait(20) == 130
            assert "Cancelled." in rest
            wait_for(lambda: not any(c.is_running() and c.status() != psutil.STATUS_ZOMBIE for c in children))
        finally:
            watchdog.cancel()
            process.kill()


def test_wrong_arguments_exit_2(capsys):
    for arguments in (["bench"], ["bench", "x.yaml", "--concurrency", "none"], ["bench", "x.yaml", "--requests", "0"]):
        with pytest.raises(SystemExit) as stop:
            cli.main(arguments)
        assert stop.value.code == 2
    assert "e.g. 1, 2, 4, 8" in capsys.readouterr().err
