"""How many jobs start, how fast and how many together: lanes, rates, breakers and chunks."""
