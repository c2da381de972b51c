"""Where documents are: rows, vectors and sealed originals."""
