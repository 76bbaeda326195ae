"""What chats and answers have come to, for people who look after them: figures, audit, evaluation, playground."""
