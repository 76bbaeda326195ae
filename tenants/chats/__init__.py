"""Conversations between customers, the assistant and operators, and how they reach the outside."""
