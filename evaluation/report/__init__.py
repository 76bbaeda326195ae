"""A measured run as people and programs read it: tables, JSON, JUnit XML, and a page with pictures."""
