"""Schedules: cron expressions, and what is due."""
