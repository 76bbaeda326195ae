"""Schema migrations of the records, one step a file. Shipped with the package and applied when the database opens."""
