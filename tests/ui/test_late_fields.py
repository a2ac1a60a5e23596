"""Fields that come after all else of their page: what is chosen meanwhile, and that none is lost."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from profiler.ui import first_chart


def _page(is_late: bool, ending: str) -> None:
    import streamlit as st

    from profiler.errors import ProfilerError
    from profiler.ui import late_fields
    from profiler.ui.controls import Filters
    from profiler.ui.errors import errors_shown

    is_first = "ran" not in st.session_state
    st.session_state["ran"] = True
    with late_fields.may_wait(is_late and is_first), errors_shown():
        late_fields.wait()
        filters = Filters("test")
        family = filters.select("family", ["a", "b"], "family")
        with st.container(horizontal=True):
            view = filters.switch("view", ["one", "two"], "view", "two")
            with late_fields.popover("more"):
                kernels = filters.text("kernels", "kernels")
                shown = filters.multiselect("versions", ["v1", "v2"], "show", ["v2"])
        chip = filters.chips("line", ["x", "y"], "line")
        st.text(f"{family} {view} {kernels} {shown} {chip}")
        if ending == "error":
            raise ProfilerError("cannot be opened")
        late_fields.wait_for_chart()
        if ending == "stop":
            late_fields.draw()
            st.stop()
        below = filters.select("below", ["c", "d"], "below")
        st.text(below)
        filters.write_url()
        late_fields.draw()


def run(is_late: bool, ending: str = "", **query: str) -> AppTest:
    app = AppTest.from_function(_page, kwargs={"is_late": is_late, "ending": ending}, default_timeout=60)
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def fields(app: AppTest) -> dict[str, object]:
    """What each field shows, by key, in the order in which they stand on the page."""
    kinds = (app.selectbox, app.button_group, app.text_input, app.multiselect)
    return {str(field.key): field.value for kind in kinds for field in kind}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_chart, "LONGEST_S", 0.0)


@pytest.mark.parametrize(
    "query", [{}, {"family": "b", "view": "one", "kernels": "k", "show": "v1,v2", "line": "y", "below": "d"}]
)
def test_a_page_has_the_same_fields_and_choices_late_as_at_once(query: dict[str, str]) -> None:
    late, at_once = run(True, **query), run(False, **query)
    assert not late.exception
    assert len(fields(at_once)) == 6
    assert fields(late) == fields(at_once)
    assert [element.value for element in late.text] == [element.value for element in at_once.text]
    assert dict(late.query_params) == dict(at_once.query_params)
    assert len(late.get("popover")) == len(at_once.get("popover")) == 1


@pytest.mark.parametrize("ending", ["error", "stop"])
def test_a_page_that_ends_early_has_its_fields(ending: str) -> None:
    app = run(True, ending)
    assert len(fields(app)) == 5
    assert any("cannot be opened" in element.value for element in app.html) is (ending == "error")


def test_a_choice_in_a_late_field_holds() -> None:
    app = run(True)
    app.selectbox(key="test_family").select("b").run()
    assert app.text[0].value.startswith("b two")
    assert app.query_params["family"] == "b"
