"""How a figure comes about: what is run, on which allocators, watched how, kept where."""
