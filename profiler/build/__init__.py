"""What a compiler makes of versions: libraries, resources, opcode counts, occupancy, lower bounds."""
