"""Help centre of a site: articles that customers search and read."""
