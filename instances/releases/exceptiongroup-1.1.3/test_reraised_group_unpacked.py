import pytest
from exceptiongroup import ExceptionGroup, catch


def test_bare_raise_in_handler_keeps_the_group():
    def handler(excgroup):
        raise

    with pytest.raises(ExceptionGroup) as info:
        with catch({ValueError: handler}):
            raise ExceptionGroup("batch", [ValueError("row 3")])
    assert isinstance(info.value.exceptions[0], (ValueError, ExceptionGroup))
