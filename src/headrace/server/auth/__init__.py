"""Who may do what: API keys, scopes, the audit log, and fields that are never shown."""
