"""Commands that run until they are stopped: worker and server."""
