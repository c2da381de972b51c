"""Alerts: rules over the facts that findings are made of, and the notices that receivers get."""
