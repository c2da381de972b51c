"""Commands of those who run the place: queues, lanes, workers, keys, artifacts, prune, doctor."""
