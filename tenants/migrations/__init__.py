"""How the records' tables came to be, one step a file. Shipped with the package and applied on opening the database."""
