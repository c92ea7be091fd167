"""The form of one model, with the estimate above it. Qt main thread; fields in, fields out.

What the fields mean is ``model_fields``'s business; the file's metadata and the estimate come from the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from laya_desktop.gui.i18n import QT_TR_NOOP, tr, translated
from laya_desktop.gui.qtmodels.model_estimate import EstimateWords
from laya_desktop.gui.qtmodels.model_fields import ModelFields
from laya_desktop.gui.views.inputs import Choice, Editor, Switch, TextInput
from laya_desktop.gui.views.path_input import PathInput
from laya_desktop.gui.views.widgets import BarPart, FieldRow, HBar, button, column, label, row, set_property

_DEVICES = (("auto", "auto"), ("cpu", "CPU"), ("gpu", "GPU"))
_ENGINES = (("llama_cpp", "llama.cpp"), ("transformers", "transformers"))
_POLICIES = (("fifo", QT_TR_NOOP("first come, first served")), ("priority", QT_TR_NOOP("by priority")))
_KV_TYPES = tuple((name, name) for name in ("f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "f32"))
_FLASH = (("auto", "auto"), ("on", QT_TR_NOOP("on")), ("off", QT_TR_NOOP("off")))
_POOLINGS = tuple((name, name) for name in ("auto", "mean", "cls", "last", "none", "rank"))
_ADVANCED = ("kv_type", "flash_attention", "mmap", "mlock", "lora", "pooling")
"""Rows that are folded away until they are asked for, or one of them is wrong or differs from its default."""
_ROLES = {
    QT_TR_NOOP("weights"): "series_1",
    QT_TR_NOOP("KV cache"): "series_3",
    QT_TR_NOOP("compute"): "series_4",
    QT_TR_NOOP("worker"): "series_2",
}
_HELD = ("name", "path")
"""Fields that act when they are left: a half-typed name or path is nobody's wish."""


class EstimateBar(QWidget):
    """Weights, KV cache and compute against what is free, the verdict in words, and what would fit."""

    fit_clicked = Signal()
    """The offered settings are wanted."""

    def __init__(self) -> None:
        super().__init__()
        self.title, self.verdict = label(role="secondary"), label(role="secondary")
        self.bar = HBar(10)
        self.caption, self.reason = label(role="secondary", wrap=True), label(role="secondary", wrap=True)
        head = row(self.title, None, self.verdict)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 6)
        layout.setSpacing(5)
        layout.addLayout(head)
        self.fit = button(tr("Make it fit"), on_click=self.fit_clicked.emit)
        self.offer = label(role="secondary", wrap=True)
        self._offered = QWidget()
        offered = row(self.fit, self.offer)
        offered.setStretch(1, 1)
        self._offered.setLayout(offered)
        self._offered.hide()
        for item in (self.bar, self.caption, self.reason, self._offered):
            layout.addWidget(item)

    def set_pending(self) -> None:
        """The values on show are being estimated again."""
        self.verdict.setText(tr("estimating …"))
        set_property(self.verdict, "tone", "neutral")

    def set_words(self, words: EstimateWords) -> None:
        """Show an estimate."""
        self.title.setText(words.title)
        self.verdict.setText(words.verdict)
        set_property(self.verdict, "tone", words.tone)
        self.bar.set_parts([BarPart(share, _ROLES[name], tr(name)) for name, share in words.shares], words.limit)
        self.caption.setText(words.caption)
        self.reason.setText(words.reason)
        set_property(self.reason, "tone", "warn" if words.tone == "warn" else "")
        self.caption.setVisible(bool(words.caption))
        self.reason.setVisible(bool(words.reason))
        self.offer.setText(words.offer)
        self.fit.setAccessibleDescription(words.offer)
        self.fit.setToolTip(tr("Fill in: {settings}", settings=words.offer) if words.offer else "")
        self._offered.setVisible(bool(words.offer))


class ModelForm(QWidget):
    """Editors for ``ModelFields``; emits what was typed, judges nothing."""

    edited = Signal(object, bool)
    """ModelFields, and True where the change should wait until the field is left."""
    finished = Signal()
    """A text field was left, or Enter pressed."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = ModelFields()
        self.estimate = EstimateBar()
        self.name = TextInput(tr("a unique name"))
        self.path = PathInput("/data/models/my-llm.gguf")
        self.device = Choice(_DEVICES)
        self.gpu_layers = TextInput("auto")
        self.batch_size = TextInput("4")
        self.max_seq_len = TextInput("4096")
        self.num_worker = TextInput("auto")
        self.mem_percent = TextInput(tr("the guard's share"))
        self.policy = Choice(translated(_POLICIES))
        self.max_waiting = TextInput("64")
        self.max_wait = TextInput("120s")
        self.idle_unload = TextInput(tr("never, or e.g. 10m"))
        self.preload = Switch(tr("load with the node"))
        self.warmup = Switch(tr("while loading"))
        self.pin = Switch(tr("make no room for others"))
        self.cache = Switch(tr("answer exact repeats"))
        self.replicas = TextInput("1")
        self.aliases = TextInput("none")
        self.engine = Choice(_ENGINES)
        self.kv_type = Choice(_KV_TYPES)
        self.flash_attention = Choice(translated(_FLASH))
        self.mmap = Switch(tr("weights may be reread"))
        self.mlock = Switch(tr("keep the weights in RAM"))
        self.lora = TextInput(tr("none, or e.g. style.gguf:0.8"))
        self.pooling = Choice(_POOLINGS)
        self.rows = {
            "name": FieldRow(tr("Name"), self.name),
            "path": FieldRow(tr("File"), self.path),
            "device": FieldRow(tr("Device"), self.device),
            "gpu_layers": FieldRow(tr("GPU layers"), self.gpu_layers),
            "batch_size": FieldRow(tr("Slots"), self.batch_size, key="batch_size"),
            "max_seq_len": FieldRow(tr("Context"), self.max_seq_len, key="max_seq_len"),
            "num_worker": FieldRow(tr("Threads"), self.num_worker, key="num_worker"),
            "mem_percent": FieldRow(tr("Memory cap, %"), self.mem_percent),
            "policy": FieldRow(tr("Queue"), self.policy),
            "max_waiting": FieldRow(tr("Waiting, most"), self.max_waiting),
            "max_wait": FieldRow(tr("Waiting, longest"), self.max_wait),
            "idle_unload": FieldRow(tr("Unload idle after"), self.idle_unload),
            "preload": FieldRow(tr("At start"), self.preload),
            "warmup": FieldRow(tr("Warm-up"), self.warmup),
            "pin": FieldRow(tr("Keep loaded"), self.pin),
            "cache": FieldRow(tr("Cache"), self.cache),
            "replicas": FieldRow(tr("Replicas"), self.replicas),
            "aliases": FieldRow(tr("Aliases"), self.aliases),
            "engine": FieldRow(tr("Engine"), self.engine),
            "kv_type": FieldRow(tr("KV cache type"), self.kv_type, key="kv_type"),
            "flash_attention": FieldRow(tr("Flash attention"), self.flash_attention),
            "mmap": FieldRow(tr("Map the file"), self.mmap),
            "mlock": FieldRow(tr("Lock"), self.mlock),
            "lora": FieldRow(tr("Adapters"), self.lora, key="lora"),
            "pooling": FieldRow(tr("Embeddings"), self.pooling, key="pooling"),
        }
        self.max_seq_len.setToolTip(tr("Tokens of context for each slot."))
        self.batch_size.setToolTip(tr("Sequences decoded together."))
        self.pin.setToolTip(tr("Neither idle unload nor a load that needs its memory unloads it."))
        self.replicas.setToolTip(tr("Processes that each hold the model; requests go to the least busy one."))
        self.aliases.setToolTip(tr("Other names that callers may use, with commas between."))
        self.pooling.setToolTip(
            tr("How a text's tokens become one vector. auto: as the model's file says, else their mean.")
        )
        self.lora.setToolTip(
            tr("GGUF files of adapters (LoRA), with semicolons between; a scale other than 1 stands after a colon.")
        )
        self.engine.setToolTip(tr("llama.cpp runs GGUF files, transformers runs Hugging Face model folders."))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(self.estimate)
        self.advanced = Switch(tr("Advanced"))
        self.advanced.toggled.connect(self._show_advanced)
        self.kv_type.setToolTip(tr("q8_0 takes about half the memory of f16. A quantised type needs flash attention."))
        hidden = [self.rows[key] for key in _ADVANCED]
        shown = [line for key, line in self.rows.items() if key not in _ADVANCED]
        layout.addLayout(column(*shown, self.advanced, *hidden, spacing=6))
        self._show_advanced(False)
        self._connect()

    def _connect(self) -> None:
        self._editors: dict[str, Editor | PathInput] = {key: getattr(self, key) for key in self.rows}
        for key, editor in self._editors.items():
            editor.edited.connect(lambda hold=key in _HELD: self._tell(hold))
        for editor in self._editors.values():
            line = editor.line if isinstance(editor, PathInput) else editor
            if isinstance(line, TextInput):
                line.editingFinished.connect(self.finished)

    def fields(self) -> ModelFields:
        """What the form holds."""
        values: dict[str, Any] = {key: editor.value() for key, editor in self._editors.items()}
        return replace(self._kept, **values)

    def set_fields(self, fields: ModelFields) -> None:
        """Show these values; nothing is emitted."""
        self._kept = fields
        for key, editor in self._editors.items():
            editor.set_value(getattr(fields, key))
        self._show_device()
        default = ModelFields()
        if any(getattr(fields, key) != getattr(default, key) for key in _ADVANCED):
            self.advanced.setChecked(True)

    def set_machine(self, gpus: Iterable[int], cores: int | None, guard_percent: float) -> None:
        """Offer this machine's devices, and say what the defaults come to."""
        found = list(gpus)
        extra = [(f"gpu:{i}", tr("GPU {i}", i=i)) for i in found] if len(found) > 1 else []
        self.device.set_items([*_DEVICES, *extra])
        self.num_worker.setPlaceholderText("auto" if cores is None else tr("auto, of {cores} cores", cores=cores))
        self.mem_percent.setPlaceholderText(tr("{guard_percent:g}, the guard's share", guard_percent=guard_percent))

    def set_problems(self, problems: dict[str | None, str], file_problem: str | None) -> None:
        """Show each problem under its field; ``file_problem``: what is wrong with the file itself."""
        if any(key in problems for key in _ADVANCED):
            self.advanced.setChecked(True)
        for key, line in self.rows.items():
            line.set_error(problems.get(key) or (file_problem if key == "path" else None))

    def set_file_hint(self, text: str | None) -> None:
        """The file's metadata in one line."""
        self.rows["path"].set_hint(text)

    def _tell(self, hold: bool) -> None:
        self._show_device()
        self.edited.emit(self.fields(), hold)

    def _show_advanced(self, shown: bool) -> None:
        for key in _ADVANCED:
            self.rows[key].setVisible(shown)

    def _show_device(self) -> None:
        self.gpu_layers.setEnabled(self.device.value() != "cpu")
