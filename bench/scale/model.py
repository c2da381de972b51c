"""A model of many workers on few stores: a queue in front of the cores of each store's server.

Assumptions, each of which can be changed on the command line:

* Jobs come one by one, at random (Poisson), at the rate of the hour of a day: lowest at night,
  highest in the afternoon, `PROFILE` times the mean. They are spread evenly over the stores.
* Each job is inserted by a call of its own, and settled in an exchange of its worker. How many jobs
  share an exchange follows from the load: those that its worker has ended in `WINDOW` seconds.
* A worker with a free slot asks again after a wake-up, at most every `SIGNAL_PAUSE` seconds (that
  is the worker's `LONGEST_SIGNAL_PAUSE`), in every store; such calls that find nothing cost what
  was measured. It renews its lease in every store each `RENEWAL_SECONDS`.
* A server works on one call on each of its cores, for the processor time that was measured here.
  Its disk, its locks and the network are not in the model, nor are cores of other makes.
* The rest is arithmetic: connections, bytes stored, slots that are busy.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping
from dataclasses import dataclass

DAY = 86_400
PROFILE = (0.3, 0.25, 0.2, 0.2, 0.25, 0.35, 0.5, 0.8, 1.1, 1.35, 1.5, 1.6,
           1.6, 1.65, 1.7, 1.65, 1.55, 1.4, 1.25, 1.1, 1.0, 0.9, 0.7, 0.5)  # fmt: skip
WINDOW = 0.005
SIGNAL_PAUSE = 0.05
RENEWAL_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """What is simulated."""

    workers: int = 1_000
    slots: int = 10
    jobs_a_day: int = 100_000_000
    seconds_a_job: float = 1.0
    stores: int = 1
    cores: int = 16
    connections: int = 3

    def rate(self, hour: int) -> float:
        """Jobs a second in an hour of the day."""
        return self.jobs_a_day / DAY * PROFILE[hour] / (sum(PROFILE) / 24)


@dataclass(frozen=True, kw_only=True)
class Hour:
    """What came of one hour, of one store. Times are in seconds."""

    hour: int
    rate: float
    busy_slots: float
    empty_exchanges: float
    cores_used: float
    wait_median: float
    wait_99: float

    @property
    def overloaded(self) -> bool:
        """More work than there are cores: the backlog grows for as long as this lasts."""
        return self.wait_99 == float("inf")


def simulate(
    fleet: Fleet, cost: Mapping[str, float], *, seconds: float = 2.0, seed: int = 1
) -> list[Hour]:
    """Simulate some seconds of each hour of a day, for one of the stores, which are alike."""
    chance = random.Random(seed)
    return [_hour(fleet, cost, hour, seconds, chance) for hour in range(24)]


def _hour(
    fleet: Fleet, cost: Mapping[str, float], hour: int, seconds: float, chance: random.Random
) -> Hour:
    rate = fleet.rate(hour)
    slots = fleet.workers * fleet.slots
    busy = min(rate * fleet.seconds_a_job, slots)
    shared = max(rate / fleet.workers * WINDOW, 1.0)
    # Those with a free slot look after a wake-up; what they find is counted with the jobs.
    free = fleet.workers * (1 - (busy / slots) ** fleet.slots)
    looks = max(free * min(1 / SIGNAL_PAUSE, rate) - rate / shared, 0.0)
    calls = {
        "insert of one job": rate / fleet.stores,
        "exchange of one job": rate / fleet.stores / shared,
        "exchange that finds nothing": looks,
        "renewal of a lease": fleet.workers / RENEWAL_SECONDS,
    }
    used = sum(count * cost[name] / 1_000 for name, count in calls.items())
    waits = _queue(calls, cost, fleet.cores, seconds, chance) if used < fleet.cores else None
    return Hour(
        hour=hour,
        rate=rate,
        busy_slots=busy,
        empty_exchanges=looks,
        cores_used=used,
        wait_median=float("inf") if waits is None else waits[len(waits) // 2],
        wait_99=float("inf") if waits is None else waits[len(waits) * 99 // 100],
    )


def _queue(
    calls: Mapping[str, float],
    cost: Mapping[str, float],
    cores: int,
    seconds: float,
    chance: random.Random,
) -> list[float]:
    """How long calls wait for a core and are worked on, sorted: events one after the other."""
    names = list(calls)
    total = sum(calls.values())
    weights = [calls[name] for name in names]
    free = [0.0] * cores
    found: list[float] = []
    now = 0.0
    while now < seconds:
        now += chance.expovariate(total)
        name = chance.choices(names, weights)[0]
        service = chance.expovariate(1_000 / cost[name])
        end = max(heapq.heappop(free), now) + service
        heapq.heappush(free, end)
        if not name.startswith("renewal"):
            found.append(end - now)
    return sorted(found) or [0.0]
