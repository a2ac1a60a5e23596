"""What a page says of an error that a user can mend."""

import pytest

from profiler.compare.match_launches import kernel_filter
from profiler.errors import ProfilerError, UnknownName
from profiler.ui.errors import message_on_page


def test_a_bad_kernel_filter_is_named_by_the_field_and_not_by_the_option() -> None:
    with pytest.raises(ProfilerError) as refused:
        kernel_filter("regex:(")
    assert message_on_page(refused.value).startswith("kernels regex:(: not a regular expression")


def test_any_other_error_keeps_its_text() -> None:
    assert message_on_page(UnknownName("--kernel x: no such thing")) == "--kernel x: no such thing"
