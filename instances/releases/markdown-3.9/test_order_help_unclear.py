from markdown.extensions.footnotes import FootnoteExtension


def test_setting_explains_both_values():
    text = FootnoteExtension().config["USE_DEFINITION_ORDER"][1].lower()
    assert "true" in text and "false" in text
    assert "defin" in text
