"""What chats and turns have come to: figures of a period, counted in the database. Defined in docs/operators.md."""
