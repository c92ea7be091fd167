"""What a benchmark's figures, comparisons, recommendations and choices say, on made-up samples."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from laya_desktop.bench import advice, compare, figures, jobs, prompts, store, tune
from laya_desktop.bench.figures import Sample
from laya_desktop.bench.results import (
    BenchResult,
    Fault,
    Machine,
    Point,
    Quantiles,
    Scenario,
    Series,
    Setting,
    Trial,
    TuneResult,
)
from laya_desktop.config.loader import load_text
from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.errors import LayaError


def at(concurrency: int, rate: float, **changes: object) -> Point:
    same = Quantiles(100.0, 120.0, 150.0, 200.0)
    point = Point(concurrency, 32, 10.0, 3.2, same, same, same, same, None, 64.0, 640, rate)
    return replace(point, **changes)


def result(name: str, *points: Point, created: float = 1.0) -> BenchResult:
    series = Series(Scenario.SMALL, "tiny", points, {"batch_size": "2"})
    return BenchResult(name, created, Machine("Linux", "x", 2, 4, 8), {}, 64, 20, 32, None, (series,))


def test_figures_of_a_level_count_only_what_was_answered():
    good = [
        Sample(0.0, 200, 1.0, [0.2, 0.4, 0.8], 50.0, 3.0, 10, 3),
        Sample(0.0, 200, 2.0, [0.4, 1.0], 70.0, 5.0, 12, 2),
    ]
    refused = Sample(0.0, 429, 0.1, code="queue_full", text="The queue is full.")
    point = figures.point(2, [*good, refused, replace(refused)], 2.0)
    assert (point.requests, point.failed, point.requests_per_s) == (2, 2, 1.0)
    assert point.faults == (Fault(429, "queue_full", 2, "The queue is full."),)
    assert point.latency_ms == Quantiles(1000.0, 2000.0, 2000.0, 2000.0)
    assert point.ttft_ms == Quantiles(200.0, 400.0, 400.0, 400.0)
    assert point.itl_ms is not None
    assert point.itl_ms.most == pytest.approx(600.0)
    assert (point.tokens_per_s, point.completion_tokens, point.prompt_tokens) == (2.5, 5, 11.0)


def test_nothing_answered_is_unknown_not_zero():
    point = figures.point(1, [Sample(0.0, None, 1.0, code="cut_off")], 1.0)
    assert point.latency_ms is None
    assert point.tokens_per_s is None
    assert point.failed == 1


def test_prompts_differ_from_the_first_word_on_and_are_fitted_to_tokens():
    texts = {prompts.words(20, n) for n in range(50)}
    assert len(texts) == 50
    # a template of 30 tokens around 1.25 tokens a word
    tokens = {n: 30 + round(1.25 * n) for n in (2, 100)}
    count = prompts.fit(100, (2, tokens[2]), (100, tokens[100]))
    assert abs(30 + 1.25 * count - 100) <= 1.5
    assert prompts.fit(5, (2, 33), (100, 155)) == 1


@pytest.mark.parametrize("text", ["", "0", "1, x", "1 2 1000", ",".join(map(str, range(1, 20))), "-1", "²"])
def test_levels_that_make_no_sense_are_refused_with_an_example(text):
    with pytest.raises(LayaError, match=r"e\.g\. 1, 2, 4, 8"):
        jobs.parse_levels(text)


def test_levels_are_sorted_and_unique():
    assert jobs.parse_levels("8, 1 4,4") == (1, 4, 8)


def test_messages_and_jobs_survive_the_pipe():
    job = jobs.RunJob("http://x", (jobs.Part(Scenario.LARGE, "m"),), (1, 3))
    assert jobs.read_job(jobs.line(job)) == job
    said = jobs.Finished(result("a1", at(1, 50.0)))
    assert jobs.read_message(jobs.line(said)) == said


def test_comparison_knows_which_direction_is_better():
    slow = at(1, 50.0)
    fast = at(1, 60.0, latency_ms=Quantiles(80.0, 90.0, 95.0, 99.0))
    rows = {r.metric.key: r for r in compare.compare([result("a", slow), result("b", fast)], Scenario.SMALL)}
    assert rows["tokens_per_s"].changes == (0.0, 0.2)
    assert rows["tokens_per_s"].better(1) is True
    assert rows["latency_p50"].changes[1] == pytest.approx(-0.2)
    assert rows["latency_p50"].better(1) is True
    assert rows["ttft_p50"].better(1) is None
    assert "failed" not in rows


def test_a_level_that_one_result_lacks_is_unknown_there():
    rows = compare.compare([result("a", at(1, 50.0)), result("b", at(1, 50.0), at(8, 90.0))], Scenario.SMALL)
    (row,) = [r for r in rows if r.concurrency == 8 and r.metric.key == "tokens_per_s"]
    assert row.values == (None, 90.0)
    assert row.changes == (None, None)


def test_recommendation_names_the_load_where_throughput_stops_growing():
    found = [str(f) for f in advice.findings(result("a", at(1, 50.0), at(2, 90.0), at(4, 95.0), at(8, 96.0)))]
    assert any("2 at once is a good load" in text and "90 tokens" in text for text in found)
    assert any("more than 2 at once only makes requests wait" in text for text in found)


def test_a_run_that_was_shed_says_so_first():
    fault = Fault(503, "overloaded", 5, "The machine is short of memory.")
    found = advice.findings(result("a", at(4, 50.0, faults=(fault,))))
    assert found[0].warning
    assert "5 of 37 requests failed with 4 at once: The machine is short of memory." in str(found[0])


def trial(batch: int, threads: int, rate: float | None) -> Trial:
    setting = Setting(batch, threads)
    return Trial(setting, at(8, rate)) if rate else Trial(setting, problem="will not fit")


def test_tune_offers_the_best_with_its_gain_and_prefers_the_smaller_of_equals():
    trials = (trial(1, 2, 83.0), trial(4, 3, 108.7), trial(8, 3, 110.0), trial(16, 3, None))
    assert tune.choose(trials) == (Setting(4, 3), 0.3096)
    text = str(advice.tune_findings(TuneResult("m", 8, trials, *tune.choose(trials)))[0])
    assert text == "batch_size 4, num_worker 3: +31 % tokens a second with 8 at once."


def test_tune_leaves_what_is_as_good_and_copes_with_settings_that_fail():
    assert tune.choose((trial(4, 2, 100.0), trial(8, 2, 102.0))) == (None, None)
    assert tune.choose((trial(4, 2, None), trial(1, 2, 40.0))) == (Setting(1, 2), None)
    assert tune.choose((trial(4, 2, None),)) == (None, None)
    assert "will not fit" in str(advice.tune_findings(TuneResult("m", 8, (trial(4, 2, None),), None))[0])


def test_tune_measures_the_present_setting_twice_and_tells_when_the_machine_was_busy():
    trials = (trial(4, 2, 50.0), trial(8, 2, 90.0))
    busy = tune.conclude("m", 8, trials, again=trial(4, 2, 80.0))
    assert (busy.trials[0].tokens_per_s, busy.best, busy.gain) == (80.0, Setting(8, 2), 0.125)
    assert [f.warning for f in advice.tune_findings(busy)] == [False, True]
    assert "differed by 60 %" in str(advice.tune_findings(busy)[1])
    quiet = tune.conclude("m", 8, trials, again=trial(4, 2, 49.0))
    assert [f.warning for f in advice.tune_findings(quiet)] == [False]


def test_grid_begins_with_what_there_is_and_stays_within_the_machine_and_the_load():
    found = tune.grid(Setting(3, 4), cores=4, concurrency=4)
    assert found[0] == Setting(3, 4)
    assert len(set(found)) == len(found) <= tune.SETTINGS_MOST
    assert {s.batch_size for s in found} == {1, 2, 3, 4}
    assert {s.num_worker for s in found} == {2, 3, 4}


def test_tune_measures_a_copy_of_the_model_alone(tmp_path):
    model = ModelConfig(name="m", path="models/m.gguf", preload=True, aliases=("n",), replicas=2)
    other = ModelConfig(name="o", path="o.gguf")
    job = tune.job_for(NodeConfig(models=(model, other)), tmp_path, "m", concurrency=4)
    config = load_text(job.config)
    assert [m.name for m in config.models] == ["m"]
    assert config.models[0].path == tmp_path / "models/m.gguf"
    assert (config.models[0].preload, config.models[0].replicas, config.server.port) == (False, 1, 0)
    tried = tune.with_setting(config, "m", Setting(8, 3)).models[0]
    assert (tried.batch_size, tried.num_worker) == (8, 3)
    with pytest.raises(LayaError, match="no model 'x'"):
        tune.job_for(NodeConfig(models=(other,)), tmp_path, "x")


def test_results_are_kept_newest_first_and_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "KEPT", 3)
    kept = store.ResultStore(tmp_path / "benchmarks")
    for number in range(5):
        kept.save(result(f"a{number}", at(1, 50.0), created=float(number)))
    assert [r.result_id for r in kept.load()][:2] == ["a4", "a3"]
    assert len(list(kept.folder.iterdir())) == 3
    (kept.folder / "broken.json").write_text("{")
    assert len(kept.load()) == 3
    kept.delete("a4")
    kept.delete("../a3")
    assert [r.result_id for r in kept.load()] == ["a3", "a2"]


def test_export_writes_json_and_csv_or_says_why_not(tmp_path):
    one = result("a1", at(1, 50.0), at(2, 80.0))
    written = json.loads(store.export([one], tmp_path / "x.json").read_text())
    assert written["series"][0]["points"][1]["tokens_per_s"] == 80.0
    head, first, _second = store.export([one], tmp_path / "x.csv").read_text().splitlines()
    line = dict(zip(head.split(","), first.split(","), strict=True))
    assert (line["target"], line["concurrency"], line["latency_ms_p99"]) == ("tiny", "1", "150.0")
    with pytest.raises(LayaError, match="could not be written"):
        store.export([one], tmp_path / "no" / "x.json")
