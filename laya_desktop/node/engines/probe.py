"""What this llama.cpp build and this machine can do with GPUs, found out in a throwaway worker. The node's thread."""

from __future__ import annotations

import logging

from laya_desktop.errors import LayaError
from laya_desktop.node.engines.advice import GET_BACKEND, GET_GPU, NO_BACKEND, NO_GPU
from laya_desktop.node.engines.base import Device, Probe, Probed
from laya_desktop.node.engines.oneshot import ask
from laya_desktop.state.snapshot import Capability

log = logging.getLogger(__name__)

TIMEOUT_S = 30.0
"""A GPU driver may take seconds to wake up."""


async def probe() -> Capability:
    """Ask a worker; a probe that fails is a capability without GPUs and with the reason, never an error."""
    try:
        answer = await ask("probe", Probe(), TIMEOUT_S)
    except LayaError as error:
        log.warning("The GPU probe failed: %s", error)
        return Capability(probed=True, reason=f"GPUs could not be probed. {error}")
    assert isinstance(answer, Probed)
    return describe(answer)


def describe(answer: Probed) -> Capability:
    """The answer in words."""
    gpus = [d for d in answer.devices if d.kind in ("gpu", "igpu")]
    reason = None
    if not answer.gpu_build:
        reason = f"{NO_BACKEND}. {GET_BACKEND}"
    elif not gpus:
        reason = f"{NO_GPU}. {GET_GPU}"
    return Capability(
        probed=True,
        gpu_available=answer.gpu_build and bool(gpus),
        reason=reason,
        devices=tuple(_in_words(d) for d in answer.devices),
        llama_version=answer.llama_version,
    )


def _in_words(device: Device) -> str:
    if device.total_bytes is None:
        return f"{device.name} {device.description}"
    return f"{device.name} {device.description} ({device.total_bytes / 2**30:.1f} GiB)"
