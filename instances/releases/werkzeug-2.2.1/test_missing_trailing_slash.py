from werkzeug.routing import Map, Rule


def test_non_strict_branch_rule_matches_without_slash():
    adapter = Map([Rule("/branch/", endpoint="branch", strict_slashes=False),
                   Rule("/leaf", endpoint="leaf", strict_slashes=False)]).bind("example.org")
    assert adapter.match("/leaf/") == ("leaf", {})
    assert adapter.match("/branch") == ("branch", {})
