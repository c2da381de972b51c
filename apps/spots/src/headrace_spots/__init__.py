"""Headrace bundle `spots`: shops are analysed from their public pages."""
