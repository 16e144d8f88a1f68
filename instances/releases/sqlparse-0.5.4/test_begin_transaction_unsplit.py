import sqlparse


def test_begin_transaction_does_not_swallow_following_statements():
    script = "BEGIN TRANSACTION; UPDATE stock SET n = 1; SELECT 2; COMMIT;"
    parts = [s.strip() for s in sqlparse.split(script)]
    assert parts == ["BEGIN TRANSACTION;", "UPDATE stock SET n = 1;", "SELECT 2;", "COMMIT;"]
