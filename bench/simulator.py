"""Made latencies that err as GPUs do: clock states, drift, jitter with memory, outliers, offsets, ticks."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Sizes are shares of the latency. Source: fitted to 92,280 real series of GPU event timings on 6 GPUs
# (docs/calibration.md); `throttle` is a server GPU that loses 15 % of its speed over about 100 launches.


@dataclass(frozen=True)
class Scenario:
    """One kind of machine."""

    jitter: float  # sd of a call
    memory: float  # of the jitter from call to call (AR1)
    outliers: float  # share of calls
    outlier_size: float  # mean of an exponential
    step: float = 0.0  # between neighbouring clock states
    states: int = 1
    dwell: float = 50.0  # calls in one clock state
    drift: float = 0.001  # sd of where the run's warm-up ends
    warming: float = 150.0  # calls after which 63 % of it is there
    process: float = 0.001  # sd of a fresh process's offset
    tick: float = 0.0  # of the event timer
    throttle: float = 0.0  # speed lost, from a chance moment of the run on
    throttle_calls: float = 100.0  # over which it is lost


TICK_NS = 1024.0
SCENARIOS = {
    "iid": Scenario(0.005, 0.0, 0.01, 0.05, drift=0.0, warming=100.0, process=0.0),
    "locked": Scenario(0.0015, 0.25, 0.02, 0.02, tick=TICK_NS / 1.8e6),
    "server": Scenario(0.005, 0.4, 0.02, 0.05, 0.012, 2, 40.0, 0.005, 150.0, 0.003, TICK_NS / 1.8e6),
    "boost": Scenario(0.007, 0.7, 0.03, 0.08, 0.025, 3, 30.0, 0.03, 100.0, 0.005, TICK_NS / 1.8e6),
    "short": Scenario(0.004, 0.2, 0.02, 0.05, tick=TICK_NS / 40e3),
}
SCENARIOS["throttle"] = replace(SCENARIOS["server"], throttle=0.15)
CALL_NS = {name: 40e3 if name == "short" else 1.8e6 for name in SCENARIOS}
OWN_PLACE = 0.25  # of a process's offset that each version has for itself there, as where its arrays lie


def paired(
    name: str, repeats: int, *, rounds: int, samples: int, change: float, seed: int, processes: int = 3
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Live pairs, A B B A in fresh processes, as collected: two arrays [repeats, rounds, samples] of ns."""
    shape = (repeats, rounds, samples)
    a, b = np.empty(shape), np.empty(shape)
    _paired(astuple(SCENARIOS[name]), processes, change, seed, a, b)
    return a * CALL_NS[name], b * CALL_NS[name]


def alone(name: str, repeats: int, samples: int, *, seed: int) -> NDArray[np.float64]:
    """Runs of one version each, in a fresh process on another day: [repeats, samples] of ns."""
    shape = (repeats, 1, samples)
    a, unused = np.empty(shape), np.empty((repeats, 1, 0))
    _paired(astuple(SCENARIOS[name]), 1, 0.0, seed, a, unused)
    return a[:, 0] * CALL_NS[name]


def in_turn(
    name: str, repeats: int, samples: int, *, change: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A, then B at once in a fresh process, as most tools measure: two arrays [repeats, samples] of ns."""
    shape = (repeats, 1, samples)
    a, b = np.empty(shape), np.empty(shape)
    _paired(astuple(SCENARIOS[name]), 0, change, seed, a, b)
    return a[:, 0] * CALL_NS[name], b[:, 0] * CALL_NS[name]


@njit
def _paired(scenario, processes, change, seed, a, b):  # type: ignore[no-untyped-def]
    """processes 0: each side is a process of its own."""
    (
        jitter,
        memory,
        outliers,
        outlier_size,
        step,
        states,
        dwell,
        drift,
        warming,
        process,
        tick,
        loss,
        over,
    ) = scenario
    np.random.seed(seed)
    repeats, rounds, of_a = a.shape
    of_b = b.shape[2]
    fresh = jitter * math.sqrt(1 - memory * memory)
    calls = rounds * (of_a + of_b)
    for repeat in range(repeats):
        end = drift * np.random.normal()
        begin = np.random.random() * calls
        block, done = -1, 0
        state, wobble, offset = 0, 0.0, 0.0
        own_a, own_b = 0.0, 0.0
        for number in range(rounds):
            if processes and number * processes // rounds != block:
                block = number * processes // rounds
                state, wobble = np.random.randint(0, states), jitter * np.random.normal()
                offset = process * np.random.normal()
                own_a, own_b = (
                    OWN_PLACE * process * np.random.normal(),
                    OWN_PLACE * process * np.random.normal(),
                )
            for turn in range(2):
                is_b = (turn == 1) != (number % 2 == 1)
                if not processes:
                    state, wobble = np.random.randint(0, states), jitter * np.random.normal()
                    offset = process * np.random.normal()
                for index in range(of_b if is_b else of_a):
                    wobble = memory * wobble + fresh * np.random.normal()
                    if states > 1 and np.random.random() < 1.0 / dwell:
                        state = np.random.randint(0, states)
                    took = math.exp(wobble + offset + (own_b if is_b else own_a))
                    took *= (1 + step * state) * (1 + end * (1 - math.exp(-done / warming)))
                    if loss > 0 and done > begin:
                        took /= 1 - loss * min(1.0, (done - begin) / over)
                    if np.random.random() < outliers:
                        took *= 1 + outlier_size * np.random.exponential()
                    if is_b:
                        took *= 1 + change
                    if tick > 0:
                        took = math.floor(took / tick + np.random.random()) * tick
                    if is_b:
                        b[repeat, number, index] = took
                    else:
                        a[repeat, number, index] = took
                    done += 1
