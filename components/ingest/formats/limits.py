"""Size limits for one file, enforced by the readers. The sandbox limits time and memory separately."""

MAX_PARTS = 10_000
"""Maximum number of files in a packed document (DOCX, XLSX)."""
MAX_UNPACKED_BYTES = 200_000_000
"""Maximum total size of these files, unpacked."""
MAX_RATIO = 200
"""Maximum compression ratio of a file; text compresses tenfold, repetitive text a hundredfold."""
MAX_CELLS = 300_000
"""Cells of a spreadsheet over all of its sheets, the empty ones between filled ones included: what can be read in half
of the time that a file has."""
MAX_PAGES = 10_000
"""Maximum number of pages of a PDF."""
MAX_DEPTH = 200
"""Maximum nesting of HTML elements."""
