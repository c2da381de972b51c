"""One module for each page; all of them are found by themselves."""
