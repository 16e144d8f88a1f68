import typing

from tomlkit.container import Container
from tomlkit.items import AoT, Array


def name_of(annotation):
    origin = typing.get_origin(annotation) or annotation
    return getattr(origin, "__name__", str(origin)).lower()


def test_unwrap_annotations_match_the_returned_type():
    def ret(cls):
        annotation = cls.unwrap.__annotations__.get("return")
        text = annotation if isinstance(annotation, str) else name_of(annotation)
        return text.lower()

    assert ret(Container).split("[")[0].split(".")[-1] in {"dict", "mapping"}
    for cls in (Array, AoT):
        assert ret(cls).split("[")[0].split(".")[-1] in {"list", "sequence"}
