"""A kernel run on the CPU thread by thread: its numbers, races, waits and bank conflicts."""
