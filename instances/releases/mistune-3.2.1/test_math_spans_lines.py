import mistune


def test_inline_math_does_not_cross_lines():
    md = mistune.create_markdown(plugins=["math"])
    html = md("It costs $5 today\nand maybe $6 tomorrow.")
    assert "math" not in html
    assert '<span class="math">' in md("Euler: $e=mc^2$ done")
