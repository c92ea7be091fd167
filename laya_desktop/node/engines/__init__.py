"""Engines hold one model each: the protocol (base), llama.cpp, a fake, and the worker process that runs them."""
