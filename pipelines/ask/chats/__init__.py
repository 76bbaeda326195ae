"""Chats between customers, the assistant and operators: the use case, and what it is reached by."""
