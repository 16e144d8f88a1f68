import markdown

TEXT = "One[^b] two[^a].\n\n[^a]: first defined\n[^b]: second defined\n"


def test_definition_order_is_still_the_default():
    html = markdown.markdown(TEXT, extensions=["footnotes"])
    assert html.index("first defined") < html.index("second defined")


def test_document_order_can_be_requested():
    html = markdown.markdown(TEXT, extensions=["footnotes"],
                             extension_configs={"footnotes": {"USE_DEFINITION_ORDER": False}})
    assert html.index("second defined") < html.index("first defined")
