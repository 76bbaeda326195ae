"""How the judge of relevance is fitted, and what it is worth on a vendor that it never saw."""
