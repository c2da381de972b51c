"""HTTP as such: bodies, problem documents, server-sent events, uploads and downloads."""
