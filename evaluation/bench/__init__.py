"""Benchmarks of a real service: `python -m evaluation.bench.speed.NAME`."""
