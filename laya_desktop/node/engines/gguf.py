"""Is this path a model that can be loaded, and what is in it? Blocking file reads: a pool thread or the worker.

Shared by the form in the window (through ``inspect``) and by the engine before a load, so that both say the same. Every
refusal names the file, the reason and the way out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from laya_desktop.errors import LayaError
from laya_desktop.node.engines.base import EngineLoadError
from laya_desktop.node.engines.gguf_reader import GgufError, Header, read_header
from laya_desktop.state.snapshot import ModelFileInfo

_LEGACY = {m[::step] for m in (b"ggml", b"ggmf", b"ggjt", b"ggla") for step in (1, -1)}
_PART = re.compile(r"^(.*)-(\d{5})-of-(\d{5})\.gguf$")
_GET_GGUF = "Download the GGUF version of the model, or convert it with llama.cpp's convert_hf_to_gguf.py."
_OTHERS = (
    (b"<!DO", "a web page, probably the answer of a failed download", "Download the file again."),
    (b"<htm", "a web page, probably the answer of a failed download", "Download the file again."),
    (b"vers", "a Git LFS pointer, not the model itself", "Fetch the real file with git lfs pull."),
    (b"PK\x03\x04", "a zip archive or a PyTorch checkpoint", _GET_GGUF),
)


@dataclass(frozen=True)
class ModelFile:
    """A model file that passed every check, with the parts of a split model."""

    path: Path
    headers: tuple[Header, ...]

    @property
    def size_bytes(self) -> int:
        """Of all parts."""
        return sum(h.file_size for h in self.headers)

    @property
    def head(self) -> Header:
        """The first part's header, which has the metadata."""
        return self.headers[0]


def check(path: str | Path) -> ModelFile:
    """Every check that needs no llama.cpp.

    Raises:
        EngineLoadError: code ``model_file_missing``, ``model_file_unreadable`` or ``bad_model_file``.
    """
    path = Path(path).expanduser()
    header = _check_one(path)
    match = _PART.match(path.name)
    if match is None or (header.number("split.count") or 1) <= 1:
        return ModelFile(path, (header,))
    parts = [path.with_name(f"{match[1]}-{i:05d}-of-{match[3]}.gguf") for i in range(1, int(match[3]) + 1)]
    if path != parts[0]:
        raise EngineLoadError(
            f"{path} is part {int(match[2])} of a split model.",
            f"Give the first part: {parts[0]}.",
            code="bad_model_file",
        )
    if (missing := next((p for p in parts if not p.exists()), None)) is not None:
        raise EngineLoadError(
            f"{path} is the first of {len(parts)} parts, and {missing.name} is missing.",
            "Put all parts into one folder.",
            code="model_file_missing",
        )
    return ModelFile(path, tuple(_check_one(p) for p in parts))


def check_adapter(path: str | Path) -> Header:
    """The header of an adapter (LoRA).

    Raises:
        EngineLoadError: code ``adapter_file_missing`` or ``bad_adapter``.
    """
    path = Path(path).expanduser()
    if not path.exists():
        hint = "Correct the adapter's path under lora, or put the file there."
        raise EngineLoadError(f"There is no adapter file {path}.", hint, "adapter_file_missing")
    try:
        header = _read(path)
        _check_whole(path, header)
    except EngineLoadError as error:
        hint = error.hint or ""
        if path.is_dir() or path.suffix in (".safetensors", ".bin", ".pt"):
            hint = "An adapter in Hugging Face's form is converted with llama.cpp's convert_lora_to_gguf.py."
        raise EngineLoadError(f"This is no adapter: {error.message}", hint, "bad_adapter") from None
    if header.text("adapter.type") != "lora":
        hint = "Give an adapter (LoRA) in GGUF form, or remove it from lora."
        raise EngineLoadError(f"{path} is a GGUF file but no adapter (LoRA).", hint, "bad_adapter")
    if "adapter.alora.invocation_tokens" in header.array_lengths:
        text = f"{path} is an adapter that certain tokens switch on (aLoRA), which is not supported."
        raise EngineLoadError(text, "Give a plain LoRA.", "bad_adapter")
    return header


def inspect(path: str | Path) -> ModelFileInfo:
    """Metadata of a model file, for people.

    Raises:
        LayaError: as ``check``, with status 400.
    """
    try:
        model = check(path)
    except EngineLoadError as error:
        raise LayaError(error.message, hint=error.hint, code=error.code, status=400, param="path") from None
    head = model.head
    return ModelFileInfo(
        path=str(model.path),
        size_bytes=model.size_bytes,
        architecture=head.text("general.architecture"),
        name=head.text("general.name"),
        parameters=sum(h.parameters for h in model.headers) or None,
        quantisation=head.quantisation,
        context_length=head.of_architecture("context_length"),
        layers=head.of_architecture("block_count"),
        embedding_length=head.of_architecture("embedding_length"),
        has_chat_template=head.text("tokenizer.chat_template") is not None,
    )


def _check_one(path: Path) -> Header:
    header = _read(path)
    _check_whole(path, header)
    _check_content(path, header)
    return header


def _read(path: Path) -> Header:
    try:
        if path.is_dir():
            raise _is_directory(path)
        if not path.exists():
            raise EngineLoadError(
                f"There is no file {path}.", "Correct the model's path, or put the file there.", "model_file_missing"
            )
        if not path.is_file():
            raise EngineLoadError(f"{path} is no regular file.", "Give the path of a GGUF file.", "bad_model_file")
        with path.open("rb") as stream:
            magic = stream.read(4)
        _check_magic(path, magic)
        return read_header(path)
    except GgufError as error:
        raise EngineLoadError(
            f"{path} cannot be read as GGUF: {error}.", "Download it again, or take another version.", "bad_model_file"
        ) from None
    except OSError as error:
        raise EngineLoadError(
            f"{path} cannot be read: {error.strerror or error}.",
            "Give your user permission to read the file and its folder.",
            "model_file_unreadable",
        ) from None


def _is_directory(path: Path) -> EngineLoadError:
    found = sorted(p.name for p in path.iterdir() if p.suffix == ".gguf")
    listed = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    hint = f"It contains {listed}: give the path of one." if found else "It contains no GGUF file."
    if not found and (path / "config.json").is_file():
        hint = (
            "It is a Hugging Face model folder: set engine: transformers to run it with PyTorch, or give a GGUF file."
        )
    return EngineLoadError(f"{path} is a folder, not a model file.", hint, "bad_model_file")


def _check_magic(path: Path, magic: bytes) -> None:
    if magic == b"GGUF":
        return
    if magic in _LEGACY:
        raise EngineLoadError(
            f"{path} is in the GGML format from before August 2023, which no current llama.cpp can load.",
            "Convert it to GGUF with llama.cpp's convert_llama_ggml_to_gguf.py, or download a GGUF of the model.",
            "legacy_ggml",
        )
    if not magic:
        raise EngineLoadError(f"{path} is empty.", "Download it again.", "bad_model_file")
    for start, what, hint in _OTHERS:
        if magic.startswith(start):
            raise EngineLoadError(f"{path} is {what}, not a GGUF model.", hint, "bad_model_file")
    hint = _GET_GGUF if path.suffix in (".safetensors", ".pth", ".pt", ".bin", ".onnx") else "Give the path of a GGUF."
    raise EngineLoadError(
        f"{path} is not a GGUF model: it begins with {magic!r} instead of b'GGUF'.", hint, "bad_model_file"
    )


def _check_whole(path: Path, header: Header) -> None:
    if header.data_end > header.file_size:
        raise EngineLoadError(
            f"{path} is cut off: its tensors need {header.data_end:,} bytes, the file has {header.file_size:,}.",
            "The download is incomplete or still running. Finish it or download the file again.",
            "bad_model_file",
        )


def _check_content(path: Path, header: Header) -> None:
    if (beside := _beside_a_model(header)) is not None:
        what, hint = beside
        raise EngineLoadError(f"{path} is {what}, no model by itself.", hint, "bad_model_file")
    if not header.tensors and (header.number("split.count") or 1) <= 1:  # a split model may begin with metadata alone
        raise EngineLoadError(
            f"{path} has no weights, only a vocabulary.", "Give the path of a whole model.", "bad_model_file"
        )


def _beside_a_model(header: Header) -> tuple[str, str] | None:
    """What a file is that only goes with a model, and what to do; None: it is a model."""
    kind, architecture = header.text("general.type"), header.text("general.architecture")
    if kind == "mmproj" or architecture == "clip":
        hint = "Give the path of the text model that it came with; Laya Desktop answers text and reads no images."
        return "the vision part (mmproj) of a model", hint
    if kind == "adapter" or header.text("adapter.type") is not None:
        hint = "Give the path of its base model, and name the adapter under lora."
        return "an adapter (LoRA)", hint
    return None
