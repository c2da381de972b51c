"""The bundle `ingest` as a scenario."""
