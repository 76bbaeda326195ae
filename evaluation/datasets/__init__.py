"""Questions with what is known of their answers, and the knowledge bases they are put to."""
