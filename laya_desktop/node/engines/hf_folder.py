"""A Hugging Face model folder, read without PyTorch: configuration, weights' headers, tokenizer. Blocking file reads.

Runs on a pool thread or in the worker; shared by the form, the finder, the estimate and the PyTorch engine, so that all
say the same. Weights are accepted as safetensors only: PyTorch's ``.bin`` and ``.pth`` files are pickles, and reading
one runs whatever code it holds. Code that a folder brings along is never run.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laya_desktop.errors import LayaError
from laya_desktop.node.engines.base import EngineLoadError
from laya_desktop.state.snapshot import ModelFileInfo

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
DTYPE_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1,
    "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip
_NAMED_DTYPES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}
_JSON_LIMIT = 64 * 1024**2
_HEADER_LIMIT = 100 * 1024**2
"""The safetensors format's own limit."""
_PICKLES = (".bin", ".pth", ".pt", ".ckpt")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model", "sentencepiece.bpe.model")
_AGAIN = "Download the folder again, completely."


@dataclass(frozen=True)
class Weights:
    """One safetensors file: what its header says."""

    path: Path
    size_bytes: int
    elements: dict[str, int]
    """Elements by dtype as the format spells it, e.g. ``BF16``."""


@dataclass(frozen=True)
class ModelFolder:
    """A folder that passed every check."""

    path: Path
    config: dict[str, Any]
    weights: tuple[Weights, ...]

    @property
    def text_config(self) -> dict[str, Any]:
        """The language model's part of the configuration."""
        inner = self.config.get("text_config")
        return inner if isinstance(inner, dict) else self.config

    @property
    def size_bytes(self) -> int:
        """Of all weights."""
        return sum(w.size_bytes for w in self.weights)

    @property
    def elements(self) -> Counter[str]:
        """Elements of all weights by dtype."""
        total: Counter[str] = Counter()
        for weights in self.weights:
            total.update(weights.elements)
        return total

    @property
    def dtype(self) -> str | None:
        """The dtype that most weights have, e.g. ``BF16``."""
        most = self.elements.most_common(1)
        return most[0][0] if most else None

    @property
    def context_length(self) -> int | None:
        """Tokens the model was made for."""
        for key in ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length"):
            if (value := _number(self.text_config.get(key))) is not None:
                return value
        return None

    @property
    def kv_bytes_per_token(self) -> int | None:
        """KV cache of one token over all layers in the model's own precision; None: the configuration does not say."""
        config = self.text_config
        layers, heads = self.layers, _number(config.get("num_attention_heads") or config.get("n_head"))
        width = _number(config.get("hidden_size") or config.get("n_embd"))
        if not layers or not heads or not width or config.get("kv_lora_rank"):
            return None
        kv_heads = _number(config.get("num_key_value_heads")) or heads
        head_dim = _number(config.get("head_dim")) or width // heads
        named = self.config.get("dtype") or self.config.get("torch_dtype") or config.get("torch_dtype")
        return 2 * layers * kv_heads * head_dim * _NAMED_DTYPES.get(str(named), DTYPE_BYTES.get(self.dtype or "", 4))

    @property
    def layers(self) -> int | None:
        """Transformer blocks."""
        return _number(self.text_config.get("num_hidden_layers") or self.text_config.get("n_layer"))


def is_model_folder(path: Path) -> bool:
    """True for a folder with a configuration that names a model; says nothing about its weights."""
    return (path / CONFIG).is_file()


def check(path: str | Path) -> ModelFolder:
    """Every check that needs no PyTorch.

    Raises:
        EngineLoadError: code ``model_file_missing``, ``model_file_unreadable`` or ``bad_model_file``.
    """
    path = Path(path).expanduser()
    if not path.exists():
        hint = "Correct the model's path, or put the folder there."
        raise EngineLoadError(f"There is no folder {path}.", hint, "model_file_missing")
    if not is_model_folder(path):
        hint = (
            f"A Hugging Face model folder has a file {CONFIG}; with engine transformers give the path of that folder."
        )
        raise EngineLoadError(f"{path} is no model folder: it has no {CONFIG}.", hint, "bad_model_file")
    try:
        config = _json(path / CONFIG)
        if not config.get("model_type") and not config.get("architectures"):
            raise EngineLoadError(f"{path / CONFIG} names no model type.", _AGAIN, "bad_model_file")
        files = _weight_files(path)
        folder = ModelFolder(path, config, tuple(_read_header(p) for p in files))
    except OSError as error:
        hint = "Give your user permission to read the folder and its files."
        raise EngineLoadError(
            f"{path} cannot be read: {error.strerror or error}.", hint, "model_file_unreadable"
        ) from None
    if not any((path / name).is_file() for name in _TOKENIZERS):
        hint = "Put the model's tokenizer.json (or tokenizer.model) beside it."
        raise EngineLoadError(f"{path} has no tokenizer.", hint, "bad_model_file")
    return folder


def inspect(path: str | Path) -> ModelFileInfo:
    """Metadata of a model folder, for people.

    Raises:
        LayaError: as ``check``, with status 400.
    """
    try:
        folder = check(path)
    except EngineLoadError as error:
        raise LayaError(error.message, hint=error.hint, code=error.code, status=400, param="path") from None
    config = folder.text_config
    kind = config.get("model_type") or folder.config.get("model_type")
    return ModelFileInfo(
        path=str(folder.path),
        size_bytes=folder.size_bytes,
        architecture=str(kind) if kind else None,
        name=_name(folder),
        parameters=sum(folder.elements.values()) or None,
        quantisation=_quantisation(folder),
        context_length=folder.context_length,
        layers=folder.layers,
        embedding_length=_number(config.get("hidden_size") or config.get("n_embd")),
        has_chat_template=_has_chat_template(folder.path),
    )


def _weight_files(path: Path) -> list[Path]:
    """The safetensors files that make the model, in order."""
    if (path / INDEX).is_file():
        mapping = _json(path / INDEX).get("weight_map")
        names = sorted({str(n) for n in mapping.values()}) if isinstance(mapping, dict) else []
        files = [path / n for n in names if Path(n).name == n]
        if (missing := next((p for p in files if not p.is_file()), None)) is not None:
            message = f"{path} is incomplete: {missing.name}, one of {len(files)} files with weights, is missing."
            raise EngineLoadError(message, _AGAIN, "model_file_missing")
        if files:
            return files
    if (path / "model.safetensors").is_file():
        return [path / "model.safetensors"]
    pickled = sorted(p.name for p in path.iterdir() if p.suffix in _PICKLES)
    if pickled:
        raise EngineLoadError(
            f"{path} has its weights as {pickled[0]} only, a pickle file: reading one runs the code it holds.",
            "Download the model's safetensors version, or convert it with Hugging Face's convert space.",
            "pickled_weights",
        )
    hint = "A model has a file model.safetensors, or several and model.safetensors.index.json."
    if any(path.glob("adapter_model.*")):
        hint = "It is an adapter (LoRA), not a model: give the path of the model it belongs to."
    raise EngineLoadError(f"{path} has no weights.", hint, "bad_model_file")


def _read_header(path: Path) -> Weights:
    """The header of a safetensors file: 8 bytes of length, then JSON. The tensors are not touched."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        first = stream.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
        if first.startswith(b"version "):
            raise EngineLoadError(
                f"{path} is a Git LFS pointer, not the weights.", "Fetch them with git lfs pull.", "bad_model_file"
            )
        if not 2 <= length <= _HEADER_LIMIT or 8 + length > size:
            raise EngineLoadError(f"{path} is no safetensors file, or cut off.", _AGAIN, "bad_model_file")
        try:
            header = json.loads(stream.read(length))
            tensors = {k: v for k, v in header.items() if k != "__metadata__"}
            end = max((int(t["data_offsets"][1]) for t in tensors.values()), default=0)
            elements: Counter[str] = Counter()
            for tensor in tensors.values():
                elements[str(tensor["dtype"])] += math.prod(int(n) for n in tensor["shape"])
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise EngineLoadError(f"The header of {path} cannot be read.", _AGAIN, "bad_model_file") from None
    if 8 + length + end > size:
        message = f"{path} is cut off: its tensors need {8 + length + end:,} bytes, the file has {size:,}."
        hint = "The download is incomplete or still running. Finish it or download the file again."
        raise EngineLoadError(message, hint, "bad_model_file")
    return Weights(path, size, dict(elements))


def _json(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _JSON_LIMIT:
        raise EngineLoadError(f"{path} is larger than {_JSON_LIMIT // 1024**2} MiB.", _AGAIN, "bad_model_file")
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise EngineLoadError(f"{path} is no JSON object.", _AGAIN, "bad_model_file")
    return value


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _quantisation(folder: ModelFolder) -> str | None:
    """``BF16``, or the method where the weights are quantised, e.g. ``GPTQ 4-bit``."""
    method = folder.config.get("quantization_config")
    if not isinstance(method, dict):
        return folder.dtype
    name, bits = str(method.get("quant_method", "quantised")).upper(), _number(method.get("bits"))
    return f"{name} {bits}-bit" if bits else name


def _name(folder: ModelFolder) -> str | None:
    """The repository's name where the configuration keeps it, else the folder's."""
    given = folder.config.get("_name_or_path")
    return given if isinstance(given, str) and given else folder.path.name or None


def _has_chat_template(path: Path) -> bool:
    if (path / "chat_template.jinja").is_file() or (path / "chat_template.json").is_file():
        return True
    settings = path / "tokenizer_config.json"
    try:
        return settings.is_file() and bool(_json(settings).get("chat_template"))
    except (OSError, EngineLoadError):
        return False
