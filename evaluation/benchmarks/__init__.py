"""Benchmarks of a real service: `python -m evaluation.benchmarks.NAME`."""
