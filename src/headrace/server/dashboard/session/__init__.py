"""Who looks at the dashboard: sign-in with an API key, and the session that follows."""
