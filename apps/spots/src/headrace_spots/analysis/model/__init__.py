"""Numbers: features of texts, the regression over them, and the file of its weights."""
