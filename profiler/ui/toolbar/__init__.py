"""What every page has at the right of the menu, and its keys, palette and exports: one component."""
