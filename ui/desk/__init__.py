"""Operator desk: its pages, their content, and the accounts."""
