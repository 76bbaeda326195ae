"""Readers of further file formats: `rst.py` here, with a function `read(data: bytes) -> Parsed`, reads files `*.rst`.

They run in the sandbox, as all readers do that are not our own few lines.
"""
