"""Tools for language models: the answers of the library, cut to a budget, over the Model Context Protocol."""
