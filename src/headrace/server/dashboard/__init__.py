"""Pages for people: what the HTTP API tells, rendered here and kept up to date by one stream.

README.md says how a page is made.
"""
