"""Pages of jobs: the list, one job, a copy of it, and bulk actions."""
