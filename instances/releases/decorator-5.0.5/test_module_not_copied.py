import decorator


def trace(f, *args, **kw):
    return f(*args, **kw)


def plain(a, b=3):
    return a + b


def test_wrapper_keeps_module_and_defaults():
    wrapped = decorator.decorate(plain, trace)
    assert wrapped.__module__ == plain.__module__
    assert wrapped.__defaults__ == (3,)
    assert wrapped(1) == 4
