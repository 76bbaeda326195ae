"""Evaluators that a measurement runs besides its own figures, described in YAML."""
