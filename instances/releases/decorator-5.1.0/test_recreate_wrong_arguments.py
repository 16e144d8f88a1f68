from decorator import contextmanager

seen = []


@contextmanager
def section(name, level=1):
    seen.append((name, level))
    yield


@section("setup", level=2)
def work(x):
    return x * 2


def test_decorated_function_reenters_with_same_arguments():
    seen.clear()
    assert work(2) == 4
    assert work(3) == 6
    assert seen == [("setup", 2), ("setup", 2)]
