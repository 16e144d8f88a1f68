import datetime
import inspect

from freezegun import freeze_time


def steps():
    yield datetime.date.today()
    yield datetime.date.today()


def test_generator_functions_run_with_frozen_time():
    frozen = freeze_time("2001-02-03")(steps)
    assert inspect.isgeneratorfunction(frozen)
    assert [str(d) for d in frozen()] == ["2001-02-03", "2001-02-03"]
    assert datetime.date.today().year > 2001
