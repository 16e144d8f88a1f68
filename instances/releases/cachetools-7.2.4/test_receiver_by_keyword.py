import cachetools


class Box:
    def __init__(self):
        self.cache = {}

    @cachetools.cachedmethod(lambda self: self.cache)
    def double(self, x):
        return 2 * x


def test_receiver_may_be_given_by_keyword():
    box = Box()
    assert Box.double(box, 3) == 6
    assert Box.double(self=box, x=4) == 8
