"""The operator desk's own records: operators, their sessions, canned replies and articles."""
