"""Requests and responses of the HTTP API, defined once for server, client and App."""
