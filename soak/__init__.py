"""Headrace over a long time: real processes under a mixed load, and what grows with it."""
