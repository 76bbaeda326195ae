"""Statistics of chats and turns for a period, computed in the database. Defined in docs/guides/desk.md."""
