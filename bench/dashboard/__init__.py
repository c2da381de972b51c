"""The scenario `dashboard`: what the pages cost to show, to keep live, and to keep series for."""
