"""How often each rule's lever was what made a kernel faster, in the labelled steps of bench/advice.py.

`python bench/advice.py REPORTS STEPS.json --write` makes this file; docs/insights.md says what the steps are.
"""

STEPS, REPOSITORIES = 58, 17
CHIPS = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")  # that the rules knew then
RULES_DIGEST = "06c173eacd351b67"  # of the rules that the steps were replayed with
RECORD_DIGEST = "64743271268cea23"  # of the numbers here, which are counted and never edited
# By the id of the statement: in how many steps its lever helped, of those in which it was given.
HELPED: dict[str, tuple[int, int]] = {
    "atomics": (1, 1),
    "atomics:l2": (3, 3),
    "block:partial": (1, 1),
    "debug:local": (1, 2),
    "divergence": (1, 3),
    "dram:in_flight": (3, 9),
    "dram:roof": (0, 3),
    "fp64:fewer": (1, 2),
    "fp64:precision": (0, 1),
    "fp64:slow": (1, 1),
    "grid:small": (0, 4),
    "idle:grid": (0, 7),
    "issue": (0, 1),
    "issue:slots": (3, 7),
    "l1:narrow_global": (0, 1),
    "l1:narrow_shared": (2, 11),
    "l1:registers": (10, 17),
    "l1:scattered": (3, 3),
    "l1:tile": (3, 4),
    "l2:limit": (1, 3),
    "latency:independent": (2, 7),
    "local": (1, 1),
    "memory:scattered": (2, 2),
    "occupancy:block": (1, 8),
    "occupancy:room": (2, 3),
    "pipe:alu": (1, 4),
    "sectors": (5, 9),
    "sectors:limit": (4, 6),
    "shared:excess": (0, 3),
    "shared:exchange": (1, 1),
    "shared:limit": (0, 1),
    "tensor:unused": (0, 1),
    "waiting:barrier": (2, 4),
    "waiting:drain": (2, 2),
    "waiting:lg_throttle": (1, 1),
    "waiting:long_scoreboard": (2, 11),
    "waiting:math_pipe_throttle": (0, 1),
    "waiting:mio_throttle": (2, 2),
    "waiting:short_scoreboard": (0, 1),
    "waiting:wait": (0, 7),
}
