"""Indexing and searching a repository of 5,000 files, beside the package rank-bm25 on the same chunks.

    pip install rank-bm25          (needed here only)
    python bench/retrieval.py [--files 5000] [--queries 50] [--seed 1]

The tree is generated: modules in five languages, with functions and classes whose names are made of the
words of some thirty subjects. *Ours* is what ``llm:bm25`` does: chunks by syntax, words of code, bm25s,
an index in the cache, and queries as long as hunks that give the three best chunks. *rank-bm25* gets the
same chunks as the same words, and finds its three best by the same rule. Cutting and finding words are
the same work for both and are told apart. Times are processor time of this process, which other programs
on the machine hardly change. The share of queries for which both find the same best chunk is told: their
formulas differ a little. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crbench.core.model import Tree
from pytest_crbench.host import digest
from pytest_crbench.models.retrieval import ranking
from pytest_crbench.models.retrieval.chunks import chunked
from pytest_crbench.models.retrieval.index import open_index
from pytest_crbench.models.retrieval.ranking import Bm25

if TYPE_CHECKING:
    from collections.abc import Callable

_SUBJECTS = """
order price tax basket customer invoice payment refund discount currency stock shipment address label
request response header cookie session token scope grant login password user group role permission policy
socket timeout retry backoff queue worker job task schedule event listener handler callback signal message
parser lexer grammar node visitor symbol type module import compiler bytecode register stack frame
matrix vector sample mean variance weight layer gradient batch epoch tensor shape index column row table
cursor query transaction commit lock page buffer cache eviction key value digest stamp record log writer
image pixel colour font glyph canvas layout widget window menu button theme style animation scene
"""
SUBJECTS = _SUBJECTS.split()
VERBS = ("get", "set", "load", "store", "find", "make", "read", "write", "parse", "check", "update", "merge")


def name(chance: random.Random, words: list[str], *, camel: bool) -> str:
    parts = [chance.choice(VERBS), *chance.sample(words, chance.randint(1, 2))]
    return parts[0] + "".join(p.title() for p in parts[1:]) if camel else "_".join(parts)


def function(chance: random.Random, words: list[str], suffix: str) -> str:
    """One function of 5 to 25 lines, with calls, conditions and a comment or a docstring."""
    camel = suffix != ".py"
    called = [name(chance, words, camel=camel) for _ in range(3)]
    title, argument, other = name(chance, words, camel=camel), chance.choice(words), chance.choice(words)
    say = f"{title.replace('_', ' ')} of the {argument} by its {other}, or of the {chance.choice(words)}."
    body = [
        chance.choice(
            [
                f"{other} = {called[0]}({argument}, {chance.randint(0, 99)})",
                f"{other} = {argument}.{called[1]}()",
                f"{called[2]}({argument}, {other})",
                f"{other} += {argument}.{chance.choice(words)} * {chance.randint(2, 9)}",
            ]
        )
        for _ in range(chance.randint(2, 18))
    ]
    if suffix == ".py":
        lines = [f"def {title}({argument}):", f'    """Return {say}"""', *(f"    {line}" for line in body)]
        return "\n".join([*lines, f"    if {other} is None:", "        return None", f"    return {other}"])
    head = {
        ".go": f"func {title}({argument} int) int {{",
        ".java": f"  int {title}(int {argument}) {{",
        ".js": f"function {title}({argument}) {{",
        ".ts": f"export function {title}({argument}: number): number {{",
    }[suffix]
    inner = "\n".join(f"    {line};" for line in body)
    return f"// Returns {say}\n{head}\n{inner}\n    return {other};\n}}"


def write_tree(root: Path, files: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(files):
        suffix = chance.choice([".py", ".py", ".go", ".java", ".js", ".ts"])
        words = chance.sample(SUBJECTS, 8)
        parts = [function(chance, words, suffix) for _ in range(chance.randint(3, 9))]
        text = "\n\n\n".join(parts)
        if suffix == ".java":
            text = f"class {words[0].title()}{number} {{\n{text}\n}}"
        place = root / words[1] / words[2] / f"{words[0]}_{number}{suffix}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n")


def queries(chunks: list[str], count: int, seed: int) -> list[str]:
    """Texts as long as hunks: some lines of one chunk, changed by a line of another."""
    chance = random.Random(seed + 1)
    made = []
    for _ in range(count):
        lines = chance.choice(chunks).split("\n")
        at = chance.randrange(max(1, len(lines) - 8))
        made.append("\n".join([*lines[at : at + 8], chance.choice(chance.choice(chunks).split("\n"))]))
    return made


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    made = action()
    return time.process_time() - began, made


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--files", type=int, default=5000)
    options.add_argument("--queries", type=int, default=50)
    options.add_argument("--seed", type=int, default=1)
    args = options.parse_args()
    try:
        from rank_bm25 import BM25Okapi
    except ImportError:
        print("this comparison needs the package rank-bm25: pip install rank-bm25", file=sys.stderr)
        return 2
    import bm25s
    import numpy

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        write_tree(root, args.files, args.seed)
        tree = Tree(root, digest.of_tree(root))
        cutting, cut = timed(lambda: chunked(tree))
        texts = [f"{c.path}\n{c.text}" for c in cut.chunks]
        finding, words = timed(lambda: [ranking.words(text) for text in texts])
        cache = Path(folder) / "cache"
        building, index = timed(lambda: open_index(tree, Bm25(), cache=cache, log=lambda _line: None))
        opening, _ = timed(lambda: open_index(tree, Bm25(), cache=cache, log=lambda _line: None))
        size = sum(f.stat().st_size for f in cache.rglob("*") if f.is_file())
        asked = queries(texts, args.queries, args.seed)
        ours, found = timed(lambda: [index.find(query, 3) for query in asked])
        rank_building, ranked = timed(lambda: BM25Okapi(words, k1=1.2, b=0.75))

        def best(query: str) -> list[int]:
            scores = ranked.get_scores(sorted(set(ranking.words(query))))
            return [int(at) for at in numpy.argsort(-scores, kind="stable")[:3]]

        theirs, rank_found = timed(lambda: [best(query) for query in asked])
    lines = len(asked)
    same = sum(
        (f[0].path, f[0].lines) == (cut.chunks[r[0]].path, cut.chunks[r[0]].lines)
        for f, r in zip(found, rank_found, strict=True)
    )
    result = {
        "files": cut.files,
        "chunks": len(cut.chunks),
        "words": sum(map(len, words)),
        "seconds": {
            "cut": round(cutting, 2),
            "words": round(finding, 2),
            "index, all of it": round(building, 2),
            "open again": round(opening, 3),
            "rank-bm25, index alone": round(rank_building, 2),
        },
        "milliseconds per query": {
            "ours": round(1000 * ours / lines, 2),
            "rank-bm25": round(1000 * theirs / lines, 2),
        },
        "query ratio": round(theirs / ours, 1),
        "same best chunk": f"{same}/{lines}",
        "index megabytes": round(size / 1e6, 1),
        "bm25s": bm25s.__version__,
        "python": platform.python_version(),
    }
    print(f"{cut.files} files, {len(cut.chunks)} chunks, {result['words']} words")
    print(f"ours       cut {cutting:.2f} s, index with cutting {building:.2f} s, open again {opening:.3f} s")
    print(f"           {1000 * ours / lines:.2f} ms per query")
    print(
        f"rank-bm25  index of the same words {rank_building:.2f} s, {1000 * theirs / lines:.2f} ms per query"
    )
    print(f"the same best chunk for {same} of {lines} queries")
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
