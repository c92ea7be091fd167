"""What the node says of a load and of a GPU, in the window's language. Pure but for the translation.

Like ``node_words``, for remarks of several sentences: a sentence whose form is not known is shown as it is.
"""

from __future__ import annotations

import re

from laya_desktop.gui.i18n import QT_TR_NOOP, language, tr

_FORMS = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"auto chose the GPU\.", QT_TR_NOOP("auto chose the GPU.")),
        (
            r"auto chose the GPU: the model needs (?P<needed>.+) of (?P<free>.+) that are free\.",
            QT_TR_NOOP("auto chose the GPU: the model needs {needed} of {free} that are free."),
        ),
        (r"(?P<why>.+), so auto chose the CPU\.", QT_TR_NOOP("{why}, so auto chose the CPU.")),
        (
            r"(?P<why>.+), so auto put (?P<n>\d+) of (?P<total>\d+) layers on the GPU and the rest on the CPU\.",
            QT_TR_NOOP("{why}, so auto put {n} of {total} layers on the GPU and the rest on the CPU."),
        ),
        (
            (
                r"(?P<why>.+); (?P<n>\d+) of (?P<total>\d+) layers there make (?P<part>[\d.]+) tokens/s "
                r"and the CPU alone (?P<cpu>[\d.]+)"
            ),
            QT_TR_NOOP("{why}; {n} of {total} layers there make {part} tokens/s and the CPU alone {cpu}"),
        ),
        (r"(?P<why>.+); not both could be measured", QT_TR_NOOP("{why}; not both could be measured")),
        (
            r"The GPU has (?P<free>.+) free and the model needs (?P<needed>.+)",
            QT_TR_NOOP("The GPU has {free} free and the model needs {needed}"),
        ),
        (r"No layers may go to the GPU", QT_TR_NOOP("No layers may go to the GPU")),
        (r"This llama\.cpp build has no GPU backend", QT_TR_NOOP("This llama.cpp build has no GPU backend")),
        (r"This llama\.cpp build has no GPU backend\.", QT_TR_NOOP("This llama.cpp build has no GPU backend.")),
        (r"llama\.cpp found no GPU", QT_TR_NOOP("llama.cpp found no GPU")),
        (r"llama\.cpp found no GPU\.", QT_TR_NOOP("llama.cpp found no GPU.")),
        (r"PyTorch found no GPU", QT_TR_NOOP("PyTorch found no GPU")),
        (r"This PyTorch \((?P<version>.+)\) has no CUDA", QT_TR_NOOP("This PyTorch ({version}) has no CUDA")),
        (
            (
                r"To use a GPU, reinstall llama-cpp-python with one: run (?P<nvidia>\S+) \(NVIDIA\), "
                r"(?P<vulkan>\S+) \(AMD, Intel\) or (?P<metal>\S+) \(Apple\) before (?P<command>pip install .+)\."
            ),
            QT_TR_NOOP(
                "To use a GPU, reinstall llama-cpp-python with one: run {nvidia} (NVIDIA), {vulkan} (AMD, Intel) or "
                "{metal} (Apple) before {command}."
            ),
        ),
        (
            r"Install the GPU's driver and check that nothing hides the GPU \(CUDA_VISIBLE_DEVICES\)\.",
            QT_TR_NOOP("Install the GPU's driver and check that nothing hides the GPU (CUDA_VISIBLE_DEVICES)."),
        ),
        (
            r"The model has no chat template, so ChatML is used for chats\.",
            QT_TR_NOOP("The model has no chat template, so ChatML is used for chats."),
        ),
        (
            r"This model is an encoder: it makes vectors of texts and generates none\.",
            QT_TR_NOOP("This model is an encoder: it makes vectors of texts and generates none."),
        ),
        (
            r"max_seq_len is (?P<wanted>[\d,]+), but the model was trained for (?P<trained>[\d,]+) tokens only\.",
            QT_TR_NOOP("max_seq_len is {wanted}, but the model was trained for {trained} tokens only."),
        ),
        (
            r"max_seq_len is (?P<wanted>[\d,]+), but the model holds (?P<held>[\d,]+) tokens; it was loaded with .+\.",
            QT_TR_NOOP("max_seq_len is {wanted}, but the model holds {held} tokens; it was loaded with {held}."),
        ),
        (r"Weights are kept as (?P<kind>\w+)\.", QT_TR_NOOP("Weights are kept as {kind}.")),
        (
            r"gpu_layers acts on llama\.cpp only: PyTorch keeps the whole model on one device\.",
            QT_TR_NOOP("gpu_layers acts on llama.cpp only: PyTorch keeps the whole model on one device."),
        ),
    )
)
_BETWEEN = re.compile(r"(?<=[.。]) ")


def sentences(text: str) -> str:
    """A remark of the node, sentence by sentence."""
    return text if language() == "en" else " ".join(map(_sentence, _BETWEEN.split(text)))


def first_sentence(text: str) -> str:
    """The first of them, with its full stop."""
    first = _BETWEEN.split(text)[0]
    return first if not first or first.endswith((".", "。", "…")) else f"{first}."


def _sentence(text: str) -> str:
    for pattern, known in _FORMS:
        if (found := pattern.fullmatch(text)) is not None:
            values = {k: _sentence(v) if k == "why" else v for k, v in found.groupdict().items()}
            return tr(known, **values) if values else tr(known)
    return text
