"""Metrics: figures with intervals, computed from records."""
