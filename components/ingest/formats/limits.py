"""How much one file may hold. Readers stop at these; time and memory have limits of their own in the sandbox."""

MAX_PARTS = 10_000
"""Files inside of a packed document (DOCX, XLSX)."""
MAX_UNPACKED_BYTES = 200_000_000
"""Bytes of all of them together once unpacked."""
MAX_RATIO = 200
"""Unpacked to packed size of one of them; text compresses tenfold, a hundredfold when it is all alike."""
MAX_CELLS = 300_000
"""Cells of a spreadsheet over all of its sheets, the empty ones between filled ones included: what can be read in half
of the time that a file has."""
MAX_PAGES = 10_000
"""Pages of a PDF."""
MAX_DEPTH = 200
"""Elements inside of each other in HTML."""
