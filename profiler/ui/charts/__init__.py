"""Charts as plain Plotly dictionaries or inline SVG, made from numbers and words."""
