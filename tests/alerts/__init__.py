"""Alerts: rules, evaluators that race, and real receivers."""
