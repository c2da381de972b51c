"""How well reviews are understood: `python -m headrace_spots.accuracy FOLDER`."""
