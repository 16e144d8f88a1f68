import pytest
import sqlparse
from sqlparse.exceptions import SQLParseError


def test_token_limit_is_reported_not_swallowed():
    rows = ", ".join("(%d, %d)" % (i, i) for i in range(6000))
    with pytest.raises(SQLParseError):
        sqlparse.parse("SELECT * FROM t WHERE (a, b) IN (%s)" % rows)
