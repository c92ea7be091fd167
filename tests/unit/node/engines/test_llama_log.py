"""Figures in llama.cpp's log, from lines of the pinned release."""

from __future__ import annotations

from laya_desktop.node.engines.llama_log import CONT, ERROR, INFO, LineJoiner, LoadLog, worth_keeping

GPU = """\
load_tensors: offloaded 31/31 layers to GPU
load_tensors:   CPU_Mapped model buffer size =    30.00 MiB
load_tensors:        CUDA0 model buffer size =    62.10 MiB
llama_context:  CUDA_Host  output buffer size =     0.75 MiB
llama_kv_cache:      CUDA0 KV buffer size =   100.00 MiB
llama_kv_cache: size =  100.00 MiB (  2048 cells,  30 layers,  4/4 seqs), K (f16):   50.00 MiB, V (f16):   50.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =    20.00 MiB
llama_kv_cache: size =   20.00 MiB (   512 cells,   5 layers,  4/4 seqs), K (f16):   10.00 MiB, V (f16):   10.00 MiB
sched_reserve:      CUDA0 compute buffer size =    90.00 MiB
sched_reserve:      CUDA0 compute buffer size =    98.25 MiB
sched_reserve:  CUDA_Host compute buffer size =     4.00 MiB
"""
MIB = 1024**2


def read(text: str) -> LoadLog:
    log = LoadLog()
    for line in text.splitlines():
        log.note(line, error=False)
    return log


def test_buffers_are_added_up_and_the_last_reservation_counts() -> None:
    log = read(GPU)
    assert (log.offloaded_layers, log.offloadable_layers) == (31, 31)
    assert log.kv_cache_bytes == 120 * MIB
    assert log.compute_bytes == round((98.25 + 4.0 + 0.75) * MIB)
    assert log.compute_of("CUDA0") == round(98.25 * MIB)
    assert log.weights == {"CPU_Mapped": 30.0, "CUDA0": 62.1}


def test_a_dry_run_counts_the_caches_own_sizes() -> None:
    log = read(
        GPU.replace("KV buffer size =   100.00", "KV buffer size =     0.00").replace(
            "=    20.00 MiB\n", "= 0.00 MiB\n"
        )
    )
    assert log.kv_cache_bytes == 120 * MIB


def test_a_model_that_sees_all_of_a_text_is_told() -> None:
    assert read(GPU).causal
    assert read("llama_context: causal_attn           = 1\n").causal
    assert not read("llama_context: n_batch = 512\nllama_context: causal_attn           = 0\n").causal


def test_nothing_said_is_unknown() -> None:
    log = LoadLog()
    assert (log.kv_cache_bytes, log.compute_bytes, log.offloaded_layers) == (None, None, None)
    assert log.reason is None


def test_the_reason_is_the_telling_error() -> None:
    log = LoadLog()
    log.note("llama_model_load: error loading model: unknown model architecture: 'x'", error=True)
    log.note("llama_model_load_from_file_impl: failed to load model", error=True)
    assert log.reason == "unknown model architecture: 'x'"


def test_pieces_become_lines() -> None:
    joiner = LineJoiner()
    assert joiner.feed(INFO, "load: ") == []
    assert joiner.feed(CONT, "done\nnext") == [(INFO, "load: done")]
    assert joiner.feed(ERROR, "bad\n") == [(INFO, "next"), (ERROR, "bad")]


def test_the_tail_is_kept_free_of_dumps() -> None:
    assert not worth_keeping("llama_model_loader: - kv   1: general.type str = model")
    assert not worth_keeping("......")
    assert not worth_keeping("  ")
    assert worth_keeping("llama_kv_cache: size = 1 MiB")
