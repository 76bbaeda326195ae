"""Calling language models: providers, time, money, faults. What they are asked is the business of who asks."""
