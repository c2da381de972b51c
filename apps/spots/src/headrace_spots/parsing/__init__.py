"""From pages to reviews: JSON-LD, microdata, and selectors for sites that have neither."""
