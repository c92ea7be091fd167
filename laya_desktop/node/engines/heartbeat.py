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
LEAP_S = 2.0 * MISSES
"""More than this between two pulses is no time of the worker's: the machine slept, and its clock (Windows) went on."""
_COMPUTING_S = 0.3
"""CPU seconds within ``STUCK_S`` that count as computing."""


class Heart:
    """One worker's heartbeat."""

    def __init__(self) -> None:
        self._missed = 0
        self._pulse: Pulse | None = None
        self._step_s = 0.0
        """How long the present step has taken, as far as it was followed."""
        self._still_s = 0.0
        """How much of that went by without any computing."""
        self._computed_s = 0.0
        """CPU seconds when that began."""

    def beat(self, *, loading: bool) -> str | None:
        """Count a beat that is about to be sent; a reason means that the worker is hung."""
        limit = MISSES_LOADING if loading else MISSES
        if self._missed >= limit:
            return f"was hung: it did not answer for {limit * BEAT_S:.0f} s"
        self._missed += 1
        if self._step_s >= STEP_LIMIT_S:
            return f"was hung: one step took more than {STEP_LIMIT_S:.0f} s"
        if self._still_s >= STUCK_S:
            return f"was hung: one step computed nothing for {STUCK_S:.0f} s"
        return None

    def excuse(self) -> None:
        """A debugger holds the worker: its silence is forgiven."""
        self._missed = 0
        self._still_s = self._step_s = 0.0

    def on_pulse(self, pulse: Pulse) -> None:
        """The worker answered."""
        self._missed = 0
        before, self._pulse = self._pulse, pulse
        passed_s = None
        if before is not None and before.step_s is not None and pulse.step_s is not None:
            passed_s = pulse.step_s - before.step_s
        if passed_s is None or passed_s < 0:  # it waits, or this is another step
            self._step_s = min(pulse.step_s or 0.0, LEAP_S)
            self._still_s, self._computed_s = 0.0, pulse.cpu_s
            return
        passed_s = min(passed_s, LEAP_S)
        self._step_s += passed_s
        self._still_s += passed_s
        if pulse.cpu_s - self._computed_s >= _COMPUTING_S:
            self._still_s, self._computed_s = 0.0, pulse.cpu_s
