"""Is a worker hung? Pure: beats that were sent and pulses that came back in, a verdict out.

The worker's reader thread answers every beat, whatever its main thread computes, and says how long the present step
has taken and how much CPU time the process has used. So a process that is stopped or dead inside the kernel misses
beats; one whose step neither ends nor computes is stuck; and a large prefill on a slow machine is neither. Beats are
counted, not timed: a node that was itself held up, or a machine that slept, sent none meanwhile and blames nobody.
A stopped process is seen sooner than here (``process_state``).
"""

from __future__ import annotations

from laya_desktop.node.engines.base import Pulse

BEAT_S = 1.0
MISSES = 10
"""Beats without an answer after which a worker counts as hung. A machine that swaps may keep it waiting for seconds."""
MISSES_LOADING = 30
"""While it loads: importing a large library may keep the interpreter from the reader thread."""
STUCK_S = 30.0
"""A step without any computing for so long is stuck."""
STEP_LIMIT_S = 900.0
"""Even a step that computes ends some time: 512 tokens of the largest model on the slowest machine take minutes."""
_COMPUTING_S = 0.3
"""CPU seconds within ``STUCK_S`` that count as computing."""


class Heart:
    """One worker's heartbeat."""

    def __init__(self) -> None:
        self._missed = 0
        self._pulse: Pulse | None = None
        self._mark: Pulse | None = None
        """The last pulse at which the step was new or had computed since."""

    def beat(self, *, loading: bool) -> str | None:
        """Count a beat that is about to be sent; a reason means that the worker is hung."""
        limit = MISSES_LOADING if loading else MISSES
        if self._missed >= limit:
            return f"was hung: it did not answer for {limit * BEAT_S:.0f} s"
        self._missed += 1
        step_s = self._pulse.step_s if self._pulse is not None else None
        if step_s is None or self._mark is None or self._mark.step_s is None:
            return None
        if step_s >= STEP_LIMIT_S:
            return f"was hung: one step took more than {STEP_LIMIT_S:.0f} s"
        if step_s - self._mark.step_s >= STUCK_S:
            return f"was hung: one step computed nothing for {STUCK_S:.0f} s"
        return None

    def excuse(self) -> None:
        """A debugger holds the worker: its silence is forgiven."""
        self._missed = 0
        self._mark = None

    def on_pulse(self, pulse: Pulse) -> None:
        """The worker answered."""
        self._missed = 0
        before, self._pulse = self._mark, pulse
        new_step = before is None or pulse.step_s is None or before.step_s is None or pulse.step_s < before.step_s
        if new_step or (before is not None and pulse.cpu_s - before.cpu_s >= _COMPUTING_S):
            self._mark = pulse
