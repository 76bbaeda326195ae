"""Finding evidence: search, near-duplicate removal, ranking."""
