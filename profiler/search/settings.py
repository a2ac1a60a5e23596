"""What a search is about, as it was started: it is never changed, since a replay has to mean the same."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

from profiler.errors import BadBundle
from profiler.search.archive import SEATS

SCHEMA = 1


@dataclass(frozen=True)
class SearchSettings:
    """A search: a family on one GPU and a set of workloads, from one version."""

    id: str
    family: str
    version: str  # that it begins with
    gpu: str
    workloads: tuple[str, ...]  # all are agreed on; the first is the one that candidates are ordered by
    generator: str  # flags, rewrites, module:function, file.py:function, or a command
    created: str
    seats: int = SEATS
    seed: int = 0  # of every choice that is made at random
    control_share: float = 0.3  # of the prompts that go without insights
    catalog: str = ""  # of another family; "" is the project's own
    templates: str = ""  # a folder with templates of the prompt in place of those that ship
    target_ns: float | None = None  # on the first workload
    generator_seconds: float = 600.0  # after which a generator is ended

    def to_json(self) -> bytes:
        """The file that keeps them."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, sort_keys=True).encode()


def parse_settings(content: bytes, where: str) -> SearchSettings:
    """The settings in a file. Raises BadBundle that names it."""
    try:
        body = json.loads(content)
        if body["schema"] > SCHEMA:
            raise BadBundle(f"{where} has schema {body['schema']}; this profiler reads up to {SCHEMA}")
        known = {item.name for item in fields(SearchSettings)}
        values = {name: value for name, value in body.items() if name in known}
        values["workloads"] = tuple(values["workloads"])
        return SearchSettings(**values)
    except BadBundle:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise BadBundle(f"{where} is no search ({type(error).__name__}: {error})") from error
