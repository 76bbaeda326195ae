"""Answers from evidence, each sentence with its citation."""
