"""Calling language models: providers, time, cost, faults. Prompts and forms belong to the callers."""
