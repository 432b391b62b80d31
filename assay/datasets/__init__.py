"""Data for recipes: made of texts, tables and images, alike on every machine, with a card of where it came from."""
