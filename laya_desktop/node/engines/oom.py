"""Evidence that the kernel killed for want of memory: a counter, read before and after. Any thread; never fails."""

from __future__ import annotations

from pathlib import Path

_VMSTAT = Path("/proc/vmstat")


def kills(vmstat: Path = _VMSTAT) -> int | None:
    """Processes that the kernel has killed since boot because memory ran out; None where it does not say."""
    try:
        text = vmstat.read_text(encoding="ascii")
    except (OSError, ValueError):
        return None
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return None
