"""The operator desk's own records: who works there, where they are signed in, what they reply with."""
