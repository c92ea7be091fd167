"""A Hugging Face model made on the spot: two layers, a few hundred tokens, trained for seconds on a handful of words.

It learns enough to repeat emojis and words, so that the contract suite has text to look at; attention, KV cache,
tokenizer and chat template are the real ones. The same folder is made once per test session.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
VOCABULARY = 400
HIDDEN = 64
CONTEXT = 512
_TEXT = "once upon a time there was little sea is word story hello colour red green blue user system b c d e f g h"
_WORDS = _TEXT.split()
_EMOJIS = "🙂 🎉"
_STEPS, _BATCH, _LENGTH = 100, 12, 40


def _lines(seed: int, count: int) -> list[str]:
    chosen = random.Random(seed)
    lines = []
    for _ in range(count):
        emojis = chosen.random() < 0.3
        lines.append("Emojis: " + f"{_EMOJIS} " * 12 if emojis else " ".join(chosen.choices(_WORDS, k=24)) + "\n")
    return lines


def make_tiny_model(folder: Path) -> Path:
    """Write model, tokenizer and chat template into ``folder``. Needs torch, transformers and tokenizers."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from transformers.utils import logging

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    bpe.train_from_iterator([*_lines(0, 200), "word word word a b c d e f g h a b c"], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<|endoftext|>", eos_token="<|im_end|>", chat_template=CHAT_TEMPLATE
    )
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=HIDDEN, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=CONTEXT,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    _train(model, [tokenizer(line)["input_ids"] for line in _lines(1, 400)])
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_model(factory: pytest.TempPathFactory) -> str:
    """The folder of the session's tiny model; skips the test where PyTorch is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
        pytest.skip("PyTorch is not installed: pip install -e '.[torch]'")
    folder = factory.getbasetemp() / "tiny-transformer"
    if not folder.exists():
        folder.mkdir()
        make_tiny_model(folder)
    return str(folder)


def _train(model, rows: list[list[int]]) -> None:  # type: ignore[no-untyped-def]
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # products this small only wait for each other
    flat = torch.tensor([t for row in rows for t in row])
    chosen = torch.Generator().manual_seed(2)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(_STEPS):
        starts = torch.randint(0, len(flat) - _LENGTH, (_BATCH,), generator=chosen)
        batch = torch.stack([flat[s : s + _LENGTH] for s in starts.tolist()])
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    torch.set_num_threads(threads)
