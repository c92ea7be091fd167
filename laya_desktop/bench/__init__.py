"""Benchmarks of a node over real HTTP: a helper process that loads it, results that are kept and compared. No Qt."""
