"""Results as files: one JSON file each in the state folder, the newest kept. Blocking I/O of a few kB; any thread.

A file that cannot be read is left alone and not listed. Nothing here measures.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from laya_desktop import paths
from laya_desktop.bench.results import FORMAT, BenchResult, Quantiles
from laya_desktop.errors import LayaError

KEPT = 50
"""Files; the oldest go first."""
_SIZE_MOST = 4 * 2**20
_ID = re.compile(r"[0-9a-f]{1,32}")
_read = msgspec.json.Decoder(BenchResult).decode
COLUMNS = (
    "scenario", "target", "concurrency", "requests", "failed", "duration_s", "requests_per_s", "tokens_per_s",
    "prompt_tokens", "completion_tokens", *(f"{name}_{q}" for name in ("latency_ms", "ttft_ms", "itl_ms", "routing_us")
    for q in ("p50", "p95", "p99")), "cpu_percent", "ram_peak_bytes", "client_cpu_percent",
)  # fmt: skip


class ResultStore:
    """The kept results of a folder; None: the user's."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or paths.state_dir() / "benchmarks"

    def load(self) -> tuple[BenchResult, ...]:
        """All readable results, newest first."""
        found = [r for file in self._files() if (r := _load(file)) is not None]
        return tuple(sorted(found, key=lambda r: -r.created_unix_s))

    def save(self, result: BenchResult) -> Path:
        """Keep a result, and no more than ``KEPT``.

        Raises:
            LayaError: the folder cannot be written.
        """
        file = self.folder / f"{result.result_id}.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write(file, to_json(result))
        except OSError as fault:
            raise LayaError(
                f"The result could not be saved in {self.folder}: {fault.strerror or fault}.",
                hint="Free some space or correct the folder's rights, or export the result elsewhere.",
                code="cannot_save",
            ) from None
        files = sorted(self._files(), key=lambda f: f.stat().st_mtime, reverse=True)
        for old in files[KEPT:]:
            old.unlink(missing_ok=True)
        return file

    def delete(self, result_id: str) -> None:
        """Forget a result."""
        if _ID.fullmatch(result_id):
            (self.folder / f"{result_id}.json").unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return list(self.folder.glob("*.json")) if self.folder.is_dir() else []


def _load(file: Path) -> BenchResult | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        if file.stat().st_size <= _SIZE_MOST:
            result = _read(file.read_bytes())
            if result.format == FORMAT and _ID.fullmatch(result.result_id):
                return result
    return None


def write(file: Path, text: str) -> None:
    """Write a whole file or none. Raises OSError."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def to_json(result: BenchResult) -> str:
    """The saved form."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n"


def to_csv(results: Sequence[BenchResult]) -> str:
    """One line a level, for spreadsheets."""
    out = io.StringIO()
    writer = csv.DictWriter(out, ("result", *COLUMNS), lineterminator="\n")
    writer.writeheader()
    for result in results:
        for series in result.series:
            for point in series.points:
                line: dict[str, object] = {
                    "result": result.result_id, "scenario": series.scenario.value, "target": series.target,
                }  # fmt: skip
                for name in COLUMNS:
                    base, _, rank = name.rpartition("_")
                    figure = getattr(point, base, None)
                    if isinstance(figure, Quantiles):
                        line[name] = getattr(figure, rank)
                    elif name not in line:
                        line[name] = getattr(point, name, None)
                writer.writerow(line)
    return out.getvalue()


def export(results: Sequence[BenchResult], file: Path) -> Path:
    """Write results as CSV where the name ends so, else as JSON (one result as it is, several as a list).

    Raises:
        LayaError: the file cannot be written.
    """
    if file.suffix.lower() == ".csv":
        text = to_csv(results)
    elif len(results) == 1:
        text = to_json(results[0])
    else:
        text = msgspec.json.format(msgspec.json.encode(list(results)), indent=2).decode() + "\n"
    try:
        write(file, text)
    except OSError as fault:
        raise LayaError(
            f"{file} could not be written: {fault.strerror or fault}.",
            hint="Choose another folder.",
            code="cannot_save",
        ) from None
    return file
