"""Metrics of chats and answers for managers: figures, audit, evaluation, playground."""
