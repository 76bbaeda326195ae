"""Readers of file formats: bytes in, one document out. They run in the sandbox only."""
