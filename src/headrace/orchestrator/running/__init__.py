"""Running attempts: slots, threads, time limits, and what an attempt's end means."""
