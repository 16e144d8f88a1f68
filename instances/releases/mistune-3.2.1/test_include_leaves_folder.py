import mistune
from mistune.directives import Include, RSTDirective


def test_include_is_confined_to_the_source_directory(tmp_path):
    (tmp_path / "secret.txt").write_text("TOP-SECRET\n")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "ok.txt").write_text("harmless\n")
    src = docs / "main.md"

    def render(target):
        md = mistune.create_markdown(plugins=[RSTDirective([Include()])])
        src.write_text(".. include:: %s\n" % target)
        return md.read(str(src))[0]

    assert "harmless" in render("ok.txt")
    assert "TOP-SECRET" not in render("../secret.txt")
