"""How often each rule's lever was what made a kernel faster, in the labelled steps of bench/advice.py.

`python bench/advice.py REPORTS STEPS.json --write` makes this file; docs/insights.md says what the steps are.
"""

STEPS, REPOSITORIES = 27, 8
RULES_DIGEST = "7e66b71729620c38"  # of the rules that the steps were replayed with
# By the id of the statement: in how many steps its lever helped, of those in which it was given.
HELPED: dict[str, tuple[int, int]] = {
    "atomics:l2": (1, 1),
    "block:partial": (1, 1),
    "divergence": (0, 2),
    "dram:in_flight": (1, 3),
    "fp64:fewer": (1, 2),
    "fp64:precision": (0, 1),
    "fp64:slow": (1, 1),
    "grid:small": (0, 4),
    "idle:grid": (0, 7),
    "issue:slots": (2, 3),
    "l1:narrow_global": (0, 1),
    "l1:narrow_shared": (2, 6),
    "l1:registers": (5, 11),
    "l1:scattered": (1, 1),
    "l1:tile": (2, 3),
    "l2:limit": (1, 1),
    "occupancy:block": (1, 6),
    "occupancy:room": (1, 1),
    "pipe:alu": (1, 2),
    "sectors": (1, 3),
    "sectors:limit": (1, 3),
    "shared:excess": (0, 1),
    "shared:exchange": (1, 1),
    "shared:limit": (0, 3),
    "tensor:unused": (0, 1),
    "waiting:barrier": (1, 2),
    "waiting:drain": (1, 1),
    "waiting:long_scoreboard": (3, 6),
    "waiting:math_pipe_throttle": (0, 1),
    "waiting:short_scoreboard": (0, 1),
    "waiting:wait": (0, 1),
}
