"""Series over time: what workers did in each minute, hour and day, and how deep queues were.

Workers and servers write records by minute; upkeep folds them into hours and days, of which there
is one record each.
"""
