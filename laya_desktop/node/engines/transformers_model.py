"""Opening a model with PyTorch and Hugging Face's transformers. Worker only.

Nothing is fetched from anywhere, no code of the model's folder is run (``trust_remote_code`` is off) and no pickle is
read. Weights keep the precision they are stored in; a GGUF is unpacked to 32 bits on the CPU, to 16 on a GPU.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.utils import logging as transformers_logging

from laya_desktop.node.engines import gguf, hf_folder
from laya_desktop.node.engines.base import EngineLoadError, EngineParams, ProgressSink

GET_CUDA = (
    "Install a PyTorch with CUDA (see pytorch.org for the command that fits your driver) and check that nothing hides "
    "the GPU (CUDA_VISIBLE_DEVICES). Or load on the CPU."
)
_TALKERS = ("CausalLM", "LMHead", "ConditionalGeneration")
"""What the class names of models that generate text have in them."""
_SAFE = {"trust_remote_code": False, "local_files_only": True}
_WEIGHTS_FROM, _WEIGHTS_TO = 0.1, 0.9
"""Where reading the weights begins and ends in the progress of a load."""


@dataclass(frozen=True)
class Placement:
    """The one device that the whole model lies on."""

    device: Any
    name: str
    note: str | None = None


@dataclass
class OpenModel:
    """A model with its tokenizer."""

    model: Any
    tokenizer: Any
    placement: Placement
    notes: tuple[str, ...]

    @property
    def config(self) -> Any:
        """The language model's part of the configuration."""
        return self.model.config.get_text_config(decoder=True)

    @property
    def weights_bytes(self) -> int:
        """All parameters and buffers; those that are tied count once."""
        tensors = {t.data_ptr(): t for t in (*self.model.parameters(), *self.model.buffers())}
        return sum(t.numel() * t.element_size() for t in tensors.values())

    @property
    def layers(self) -> int | None:
        """Transformer blocks."""
        return getattr(self.config, "num_hidden_layers", None)

    @property
    def trained_tokens(self) -> int | None:
        """The context the model was made for."""
        value = getattr(self.config, "max_position_embeddings", None) or getattr(self.config, "n_positions", None)
        return int(value) if isinstance(value, int) and value > 0 else None

    @property
    def kv_bytes_per_token(self) -> int | None:
        """KV cache of one token over all layers, where the configuration tells."""
        config = self.config
        layers, heads = self.layers, getattr(config, "num_attention_heads", None)
        width = getattr(config, "hidden_size", None)
        if not layers or not heads or not width or getattr(config, "kv_lora_rank", None):
            return None
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        head_dim = getattr(config, "head_dim", None) or width // heads
        return int(2 * layers * kv_heads * head_dim * self.model.dtype.itemsize)

    @property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end an answer."""
        settings = getattr(self.model, "generation_config", None)
        given = [getattr(settings, "eos_token_id", None), self.config.eos_token_id, self.tokenizer.eos_token_id]
        flat = [t for g in given for t in (g if isinstance(g, list | tuple) else [g])]
        return frozenset(t for t in flat if isinstance(t, int))

    @property
    def cache_argument(self) -> str | None:
        """What ``forward`` calls the KV cache: the name changed during transformers 5; None: it keeps none."""
        return next((name for name in ("cache", "past_key_values") if self.takes(name)), None)

    def takes(self, argument: str) -> bool:
        """True where the model's ``forward`` knows that argument."""
        return argument in inspect.signature(self.model.forward).parameters


def place(params: EngineParams) -> Placement:
    """Decide the device. ``auto`` prefers a GPU.

    Raises:
        EngineLoadError: a GPU was asked for and there is none, or not that one.
    """
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    built = torch.version.cuda or torch.version.hip
    why = "PyTorch found no GPU" if built else f"This PyTorch ({torch.__version__}) has no CUDA"
    wants_cpu = params.device == "cpu" or (params.device == "auto" and params.gpu_layers == 0)
    if wants_cpu or (params.device == "auto" and not count):
        note = f"{why}, so auto chose the CPU." if params.device == "auto" and not count else None
        return Placement(torch.device("cpu"), "CPU", note)
    if not count:
        message = f"Model '{params.name}' is set to device {params.device}. {why}."
        raise EngineLoadError(message, GET_CUDA, "no_gpu")
    index = int(params.device.partition(":")[2] or 0)
    if index >= count:
        names = ", ".join(f"gpu:{i} is {torch.cuda.get_device_name(i)}" for i in range(count))
        raise EngineLoadError(f"There is no {params.device} for model '{params.name}'.", f"{names}.", "no_gpu")
    note = "auto chose the GPU." if params.device == "auto" else None
    name = f"CUDA{index} {torch.cuda.get_device_name(index)}"
    return Placement(torch.device("cuda", index), name, note)


def open_model(params: EngineParams, placement: Placement, progress: ProgressSink) -> OpenModel:
    """Load weights and tokenizer onto the device.

    Raises:
        EngineLoadError: with the reason and the way out.
    """
    path = Path(params.path).expanduser()
    source, options = _source(path, placement)
    transformers_logging.set_verbosity_error()
    torch.set_num_threads(params.threads)
    with _errors_explained(path), _progress_of_weights(progress):
        file = {k: v for k, v in options.items() if k == "gguf_file"}
        config = transformers.AutoConfig.from_pretrained(source, **_SAFE, **file)
        _refuse_unfit(path, config)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **_SAFE, **file)
        progress(_WEIGHTS_FROM)
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            source, config=config, use_safetensors=True, output_loading_info=True, **_SAFE, **options
        )
        if missing := sorted(report["missing_keys"]):
            raise EngineLoadError(
                f"{path} lacks {len(missing)} of the model's weights, e.g. {missing[0]}.",
                "Download it again; or it is no text-generating model.",
                "bad_model_file",
            )
        model = model.eval().requires_grad_(False).to(placement.device)
    notes = [f"Weights are kept as {str(model.dtype).removeprefix('torch.')}."]
    if params.gpu_layers:
        notes.append("gpu_layers acts on llama.cpp only: PyTorch keeps the whole model on one device.")
    opened = OpenModel(model, tokenizer, placement, tuple(notes))
    if opened.cache_argument is None:
        raise _unsupported(path, f"{type(model).__name__} keeps no KV cache")
    return opened


def _source(path: Path, placement: Placement) -> tuple[str, dict[str, Any]]:
    """The folder to load from, and how: checks that need no PyTorch come first."""
    if path.suffix.lower() == ".gguf":
        found = gguf.check(path)
        dtype = torch.float32 if placement.device.type == "cpu" else torch.float16
        return str(found.path.parent), {"gguf_file": found.path.name, "dtype": dtype}
    if path.is_file():
        hint = "Give the path of the folder that holds config.json and the weights."
        raise EngineLoadError(f"{path} is a file; PyTorch models are folders.", hint, "bad_model_file")
    hf_folder.check(path)
    return str(path), {"dtype": "auto"}


def _refuse_unfit(path: Path, config: Any) -> None:
    if getattr(config, "is_encoder_decoder", False):
        raise _unsupported(path, f"'{config.model_type}' is an encoder-decoder, for translation or summaries")
    made_for = config.architectures or []
    talks = not made_for or any(mark in name for name in made_for for mark in _TALKERS)
    if not talks or type(config) not in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        what = f"'{config.model_type}' ({', '.join(made_for)})" if made_for else f"'{config.model_type}'"
        raise _unsupported(path, f"{what} is no text-generating model")


def _unsupported(path: Path, why: str) -> EngineLoadError:
    return EngineLoadError(f"{path} cannot be served: {why}.", "Choose a decoder model.", "unsupported_architecture")


@contextmanager
def _errors_explained(path: Path) -> Iterator[None]:
    """What transformers and PyTorch raise, in words with a way out."""
    try:
        yield
    except EngineLoadError:
        raise
    except torch.OutOfMemoryError as error:
        hint = "Choose a smaller model, or load on the CPU."
        raise EngineLoadError(f"{path} does not fit: {_first_line(error)}", hint, "too_large") from error
    except ImportError as error:
        hint = "Install what it names into Laya Desktop's Python environment with pip."
        message = f"{path} needs a package that is not installed: {_first_line(error)}"
        raise EngineLoadError(message, hint, "package_missing") from error
    except Exception as error:  # a model's folder can fail in any way
        text = _first_line(error)
        if "does not recognize this architecture" in text or "trust_remote_code" in str(error):
            hint = "Update transformers. Models that bring their own code cannot be loaded: it would run unchecked."
            message = f"{path} is of a kind that transformers {transformers.__version__} does not know."
            raise EngineLoadError(message, hint, "unsupported_architecture") from error
        hint = "Download it again, or take another version."
        raise EngineLoadError(f"{path} cannot be loaded: {text}", hint, "load_failed") from error


def _first_line(error: BaseException) -> str:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "") or type(error).__name__
    return text[:300] if text.endswith(".") else f"{text[:300]}."


@contextmanager
def _progress_of_weights(progress: ProgressSink) -> Iterator[None]:
    """Turn transformers' progress bar over the weights into ours."""

    def share(done: float) -> None:
        progress(_WEIGHTS_FROM + (_WEIGHTS_TO - _WEIGHTS_FROM) * min(done, 1.0))

    def hook(_factory: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Bar:
        return _Bar(share, *args, **kwargs)

    before = transformers_logging.set_tqdm_hook(hook)
    try:
        yield
    finally:
        transformers_logging.set_tqdm_hook(before)


class _Bar:
    """As much of tqdm as transformers uses: reports the share done, prints nothing."""

    def __init__(
        self, share: Callable[[float], None], iterable: Any = None, *_: Any, total: int | None = None, **__: Any
    ) -> None:
        self._share, self._iterable, self._done = share, iterable, 0
        self._total = total or (len(iterable) if hasattr(iterable, "__len__") else 0)

    def __iter__(self) -> Iterator[Any]:
        for item in self._iterable:
            yield item
            self.update()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, count: int = 1) -> None:
        self._done += count
        if self._total:
            self._share(self._done / self._total)

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_args, **_kwargs: None
