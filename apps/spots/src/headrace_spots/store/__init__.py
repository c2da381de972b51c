"""The tables: shops, what was found about them and when."""
