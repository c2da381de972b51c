"""What pages of jobs need: filters, details, forms, and JSON to look at."""
