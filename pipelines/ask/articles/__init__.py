"""Articles written at the desk: the gaps that they are for, what they would answer, publishing."""
