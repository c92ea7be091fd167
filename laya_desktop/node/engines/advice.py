"""Sentences about GPUs and packages that the probe, the load and the estimate share. Constants only."""

from __future__ import annotations

LLAMA_CPP_PYTHON = "0.3.36"
"""The pinned release: struct layouts change between releases."""
NO_BACKEND = "This llama.cpp build has no GPU backend"
GET_BACKEND = (
    "To use a GPU, reinstall llama-cpp-python with one: run CMAKE_ARGS=-DGGML_CUDA=on (NVIDIA), "
    "CMAKE_ARGS=-DGGML_VULKAN=on (AMD, Intel) or CMAKE_ARGS=-DGGML_METAL=on (Apple) before "
    f"pip install --force-reinstall --no-binary llama-cpp-python llama-cpp-python=={LLAMA_CPP_PYTHON}."
)
NO_GPU = "llama.cpp found no GPU"
GET_GPU = "Install the GPU's driver and check that nothing hides the GPU (CUDA_VISIBLE_DEVICES)."
OR_CPU = "Or load on the CPU."
TORCH_MISSING = "The engine 'transformers' needs PyTorch and Hugging Face's transformers, which are not installed."
NO_TORCH = "The engine 'transformers' needs PyTorch and Hugging Face's transformers, which cannot be imported"
GET_TORCH = (
    "Install them with: pip install 'laya-desktop[torch]'. Or choose the model's GGUF version and engine llama_cpp."
)
