"""Visitors who mean harm: what the running server refuses, and how long the next visitor waits meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import threading
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from profiler.store.begin_import import import_paths
from profiler.ui.server import HEADERS
from tests.browser.conftest import served
from tests.store import test_hostile_files as hostile
from tests.ui import asgi
from tests.ui.visitor import Visitor

pytestmark = [pytest.mark.server, pytest.mark.slow]

PATTERN = quote(r"regex:^(\w+\W*)+\d\d\dzz$")
PAIR = "a=ncar/MW_Baseline&b=ncar/MW_DivToMult"
ANSWERED_S = 2.0  # a page of another visitor
REFUSED_S = 5.0


def asked(address: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    """Status and headers of an answer."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, {name.lower(): text for name, text in answer.getheaders()}


@pytest.mark.parametrize("path", ["/", "/diff", "/_stcore/health", "/_stcore/metrics"])
def test_every_answer_of_the_server_has_the_headers(address: str, path: str) -> None:
    status, headers = asked(address, path)
    assert HEADERS.items() <= headers.items()
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert (status == 404) is ("metrics" in path)


def test_a_page_of_another_site_gets_no_web_socket_and_no_answer(address: str) -> None:
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://localhost"):
        with pytest.raises(InvalidStatus) as refused:
            Visitor(address, origin=origin)
        assert refused.value.response.status_code == 403
        assert asked(address, "/", Origin=origin)[0] == 403
    assert asked(address, "/", Host="evil.example")[0] == 403
    with Visitor(address) as visitor:
        assert visitor.open("runs").texts


def test_in_a_sessions_first_run_the_fields_of_trends_come_after_its_chart(address: str) -> None:
    fields = {"selectbox", "button_group", "multiselect", "text_input"}
    with Visitor(address) as visitor:
        pages = [visitor.open("trends") for _ in range(2)]
    first, again = (page.kinds for page in pages)
    assert pages[0].widgets["kernels"] == pages[1].widgets["kernels"], "what is typed is lost else"
    assert fields <= set(first)
    assert min(map(first.index, fields)) > first.index("plotly_chart")
    assert max(map(again.index, fields)) < again.index("plotly_chart")
    counts = [Counter(kind for kind in kinds if kind in fields) for kinds in (first, again)]
    assert counts[0] == counts[1]


def test_a_pattern_in_the_address_costs_no_visitor_anything(address: str) -> None:
    with Visitor(address) as attacker, Visitor(address) as visitor:
        for path in ("diff", "trends"):
            quiet_s = min(visitor.open("runs").seconds for _ in range(2))
            attack = in_background(lambda path=path: attacker.open(path, f"{PAIR}&kernels={PATTERN}"))
            waits = list(waits_while(attack, visitor))
            assert max(waits) < max(ANSWERED_S, 5 * quiet_s)


def test_what_is_uploaded_is_imported_or_refused_and_then_let_go(address: str) -> None:
    with Visitor(address) as visitor:
        for number in range(3):  # as often as one likes: files that were imported count no longer
            page = visitor.import_file(f"{number}.csv", b"no csv of ncu\n")
            assert any(f"{number}.csv: neither a report" in text for text in page.texts)
        with pytest.raises(urllib.error.HTTPError) as refused:
            Visitor.upload(StrangeSession(visitor), "x.csv", b"x")  # type: ignore[arg-type]
        assert refused.value.code == 400


def test_messages_over_the_limit_are_refused_before_they_take_memory(address: str) -> None:
    async def refusals() -> list[int | None]:
        return [code for _ in range(2) for code in await asyncio.gather(*(fragments() for _ in range(8)))]

    async def fragments() -> int | None:
        """The code with which the server closes a message of 20 MiB in pieces, which Streamlit would take."""
        place = f"ws://{urlsplit(address).netloc}/_stcore/stream"
        async with connect(place, subprotocols=["streamlit"], compression="deflate") as socket:
            assert socket.response is not None
            assert "permessage-deflate" not in str(socket.response.headers)
            with contextlib.suppress(ConnectionClosed):
                await socket.send(bytes(1 << 20) for _ in range(20))
            await socket.wait_closed()
            return socket.close_code

    codes: list[int | None] = []

    async def note() -> None:
        codes.extend(await refusals())

    asgi.run(note())
    # Where the answer is lost on the way to a client that still sends, the connection ends without a code.
    assert len(codes) == 16
    assert set(codes) <= {1009, 1006}
    with Visitor(address) as visitor:
        assert visitor.open("runs").texts


@pytest.mark.parametrize("value", ["regex:^zzz$", "../../etc/passwd", "<img src=x onerror=alert(1)>"])
def test_an_address_that_means_nothing_is_a_page_with_words(address: str, value: str) -> None:
    query = "&".join(
        f"{key}={quote(value)}" for key in ("a", "b", "family", "kernels", "run", "launch", "metric")
    )
    with Visitor(address) as visitor:
        for path in ("", "trends", "diff", "code", "runs", "regressions", "lineage", "compare", "launch"):
            page = visitor.open(path, query)
            assert page.errors == [], path
            assert not any("<img src=x" in text or "root:x" in text for text in page.texts)
        assert visitor.open("compare", "kernels=regex:%5Ezzz%24").errors == [], "a filter that leaves nothing"


class StrangeSession:
    """A visitor who claims another's session."""

    def __init__(self, visitor: Visitor) -> None:
        self.__dict__ |= vars(visitor)
        self.session = "00000000-0000-0000-0000-000000000000"


def in_background(attack: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=attack, daemon=True)
    thread.start()
    return thread


def waits_while(attack: threading.Thread, visitor: Visitor) -> Iterator[float]:
    """Seconds that pages of another visitor take while an attack goes on, and one page at least."""
    yield visitor.open("runs").seconds
    while attack.is_alive():
        yield visitor.open("runs").seconds


@pytest.mark.long
def test_while_each_attack_goes_on_a_second_visitor_is_answered(made_reports: Path, tmp_path: Path) -> None:
    import_paths([made_reports / "ncar"], data=str(tmp_path / "data"))
    writers: dict[str, Callable[[Path], None]] = {
        "entries.ncu-rep": lambda path: hostile.zero_entries(path, hostile.ZEROS // 4),
        "run_json.zip": hostile.zip_with_large_run_json,
        "names.csv": hostile.csv_of_long_names,
    }
    files: dict[str, bytes] = {}
    for name, write in writers.items():
        write(tmp_path / name)
        files[name] = (tmp_path / name).read_bytes()
    hostile.zip_with_report(tmp_path / "report.zip", tmp_path / "entries.ncu-rep")
    files["report.zip"] = (tmp_path / "report.zip").read_bytes()
    with served(tmp_path) as dashboard, Visitor(dashboard.address) as visitor:
        with Visitor(dashboard.address) as attacker:
            attacker.open("runs")
        visitor.open("runs")
        quiet_s = min(visitor.open("runs").seconds for _ in range(3))
        quiet_mib = peak_mib(dashboard.pid)
        for name, content in files.items():
            with Visitor(dashboard.address) as attacker:
                pages = []
                attack = in_background(
                    lambda attacker=attacker, name=name, content=content, pages=pages: pages.append(
                        attacker.import_file(name, content)
                    )
                )
                waits = list(waits_while(attack, visitor))
                (page,) = pages
                print(f"{name}: refused in {page.seconds:.2f} s, others waited at most {max(waits):.2f} s")
                assert any("Imported 0, 1 refused" in text for text in page.texts), name
                assert max(waits) < max(ANSWERED_S, 5 * quiet_s), name
                assert page.seconds < max(REFUSED_S, 10 * quiet_s), name
        for path in ("diff", "trends"):
            with Visitor(dashboard.address) as attacker:
                attack = in_background(
                    lambda attacker=attacker, path=path: attacker.open(path, f"{PAIR}&kernels={PATTERN}")
                )
                waits = list(waits_while(attack, visitor))
                print(f"{path}?kernels=regex:…: others waited at most {max(waits):.2f} s")
                assert max(waits) < max(ANSWERED_S, 5 * quiet_s), path
        grown = peak_mib(dashboard.pid) - quiet_mib
        print(f"a quiet page takes {quiet_s:.2f} s; the server grew by {grown} MiB")
        assert grown < 300


def peak_mib(pid: int) -> int:
    """The most memory that a process has held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) // 1024
