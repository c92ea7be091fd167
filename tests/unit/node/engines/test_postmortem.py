"""A death is explained with its signal, its most telling log line and a way out."""

from __future__ import annotations

import pytest

from laya_desktop.node.engines.postmortem import explain_death


@pytest.mark.parametrize(
    ("code", "says", "hint"),
    [
        (-9, "killed (SIGKILL), often by the kernel when memory runs out", "smaller model"),
        (-4, "SIGILL", "GGML_NATIVE=OFF"),
        (-7, "SIGBUS", "truncated"),
        (-11, "SIGSEGV", "report"),
        (-6, "SIGABRT", "report"),
        (3, "exit code 3", "log lines"),
        (0, "exit code 0", "log lines"),
        (None, "stopped answering", "Load"),
    ],
)
def test_the_exit_is_named(code: int | None, says: str, hint: str) -> None:
    error = explain_death("m", code, [], loading=False)
    assert says in error.message
    assert "'m'" in error.message
    assert error.hint is not None
    assert hint in error.hint
    assert (error.code, error.status) == ("worker_died", 503)


def test_an_assertion_is_quoted() -> None:
    tail = ["loading", "ggml.c:12: GGML_ASSERT(n > 0) failed", "bye"]
    error = explain_death("m", -6, tail, loading=True)
    assert "GGML_ASSERT(n > 0) failed" in error.message
    assert "loading" in error.message


def test_memory_wins_over_everything_else() -> None:
    tail = ["CUDA error: out of memory", "GGML_ASSERT(x)"]
    error = explain_death("m", -6, tail, loading=False)
    assert "ran out of memory" in error.message
    assert error.hint is not None
    assert "max_seq_len" in error.hint


def test_what_the_parent_saw_wins_over_the_signal() -> None:
    error = explain_death("m", -9, [], loading=False, reason="sent what is no message (x)")
    assert "sent what is no message (x)" in error.message
    assert "SIGKILL" not in error.message


def test_deaths_have_codes() -> None:
    tail = ["terminate called after throwing an instance of 'std::bad_alloc'"]
    assert explain_death("m", -6, tail, loading=False).code == "out_of_memory"
    assert explain_death("m", 1, ["libgomp: Thread creation failed"], loading=False).code == "out_of_memory"
    assert explain_death("m", -9, [], loading=False, reason="was hung: it did not answer").code == "worker_hung"
    assert explain_death("m", -9, [], loading=False, reason="sent what is no message").code == "worker_died"


def test_a_kill_while_the_kernel_killed_for_memory_is_out_of_memory() -> None:
    error = explain_death("m", -9, [], loading=False, oom_kill=True)
    assert error.code == "out_of_memory"
    assert "killed by the kernel because memory ran out" in error.message
    assert explain_death("m", -6, [], loading=False, oom_kill=True).code == "worker_died"
