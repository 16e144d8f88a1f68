"""Asking a model: one question, one answer, with retries, a budget and shared completions."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl

from ..core.errors import InfraError
from ..text import plainjson, urls
from ..text.printable import clean, decode, printable
from ..text.secrets import scrub, scrubbed
from . import completion
from .completion import CHAT
from .retry import DeadlineError, Failure, Patience, of_status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openai import OpenAI

    from .completion import Completion, CompletionCache, Route
    from .usage import Ledger

DEFAULT_BASE_URL = "https://api.openai.com/v1"
#: Bytes of a response that are read at most: no completion is that long.
_BODY_LIMIT = 32 * 1024**2


@dataclass(frozen=True)
class Model:
    """A model behind an OpenAI-compatible endpoint, and how it is asked.

    Sampling parameters are sent only where they are set. ``extra_body`` takes those that are not OpenAI's
    own (``top_k``). ``limit_parameter`` is the name that the endpoint has for ``max_output_tokens``:
    ``max_completion_tokens``, or ``max_tokens`` for older servers.
    """

    model: str
    base_url: str = DEFAULT_BASE_URL
    key: str = field(default="", repr=False)
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_output_tokens: int | None = None
    limit_parameter: str = "max_completion_tokens"
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    patience: Patience = field(default_factory=Patience)
    cache: CompletionCache | None = None
    ledger: Ledger | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in any file or message."""
        return tuple(secret for secret in (self.key, *urls.secrets_in(self.base_url)) if secret)

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides the answers, as plain JSON without credentials."""
        return {"model": self.model, "base_url": urls.public(self.base_url), **self._sampling()}

    def prepare(self) -> None:
        """Load what a call needs, before anybody's time runs: that takes seconds on a busy machine.

        Raises:
            InfraError: ``endpoint``, if no client can be made.
        """
        _ = self._client.chat.completions.with_streaming_response

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        deadline: float | None = None,
        cache_key_extra: Any = None,
        patience: float | None = None,
        response_format: Mapping[str, Any] | None = None,
        usable: Callable[[Completion], bool] | None = None,
    ) -> Completion:
        """Ask once, waiting out what passes.

        Args:
            messages: the conversation in OpenAI's format.
            tools: tool schemas in OpenAI's format.
            deadline: `time.monotonic` value at which the caller's time is up. Seconds lost to a failing
                endpoint are not the caller's: they move it (and are told in ``Completion.lost``).
            cache_key_extra: plain JSON that tells apart questions that must not share an answer (repeats).
            patience: seconds that may be lost to failures, if less than ``self.patience.total``.
            response_format: the form of the answer, as OpenAI's parameter of that name.
            usable: says whether an answer is kept for the next time; one that cannot be used is asked for
                again then.

        Raises:
            DeadlineError: the deadline came while the endpoint was still answering.
            ContextLengthError: the messages are too long for the model.
            InfraError: ``rate-limit``, ``quota``, ``endpoint``, ``certificate``, ``timeout``,
                ``unauthorized``, ``not-found``, ``rejected``, ``unreadable`` or ``budget``; never holds the
                key.
        """
        request = self.request_of(messages, tools, response_format)
        characters = len(json.dumps([request["messages"], request.get("tools")], ensure_ascii=False))
        question = {"base_url": urls.public(self.base_url), "request": request, "extra": cache_key_extra}
        key = self.cache.key(question) if self.cache else ""
        stored = self.cache.get(key) if self.cache else None
        if stored is not None:
            answer = completion.read(stored, prompt_characters=characters)
            return replace(answer, usage=replace(answer.usage, calls_from_cache=1))
        if self.ledger:
            self.ledger.check()
        allowed = self.patience.total if patience is None else min(patience, self.patience.total)
        body, lost = self.post(CHAT, request, deadline, allowed)
        answer = replace(completion.read(body, prompt_characters=characters), lost=lost)
        if self.ledger:
            self.ledger.add(answer.usage)
        kept = answer.finish_reason != "no-choices" and (usable is None or usable(answer))
        if self.cache and kept and not self._tells_secret([question, body]):
            self.cache.put(key, question, body)
        return answer

    def listed(self, timeout: float) -> tuple[str, ...]:
        """Return the names of the models that the endpoint offers; takes no tokens, is not retried.

        Args:
            timeout: seconds to connect, and between two pieces of the answer.

        Raises:
            InfraError: with a reason as `complete`; never holds the key.
        """
        import openai

        try:
            data = self._client.models.with_raw_response.list(timeout=timeout).content
        except openai.APITimeoutError:
            raise self._hanging(timeout).error() from None
        except openai.APIStatusError as error:
            failure = of_status(error.status_code, self._said(error), error.response.headers, self._where)
            raise failure.error() from None
        except _connection_errors() as error:
            raise self._unconnected(error).error() from None
        try:
            return tuple(str(one["id"]) for one in plainjson.parse(data)["data"])
        except (ValueError, KeyError, TypeError):
            raise self._unreadable(data, "no list of models").error() from None

    def request_of(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        response_format: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """Return the body of a request as it is sent."""
        request: dict[str, Any] = {"model": self.model, "messages": list(messages), **self._sampling()}
        if tools:
            request["tools"] = list(tools)
        if response_format:
            request["response_format"] = dict(response_format)
        # A lone surrogate (from a file name or a comment) cannot be sent, and must not end the run.
        return cast("dict[str, Any]", json.loads(clean(json.dumps(request, ensure_ascii=False))))

    def _sampling(self) -> dict[str, Any]:
        chosen: dict[str, Any] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            self.limit_parameter: self.max_output_tokens,
        }
        return {**{k: v for k, v in chosen.items() if v is not None}, **self.extra_body}

    def post(
        self, route: Route, request: dict[str, Any], deadline: float | None, allowed: float
    ) -> tuple[dict[str, Any], float]:
        """Attempt until an answer comes or patience ends; returns the body and the seconds lost.

        Args:
            route: what kind of question it is.
            request: the body to send.
            deadline: `time.monotonic` value at which the caller's time is up.
            allowed: seconds that may be lost to failures.

        Raises:
            InfraError: as `complete`.
        """
        self.prepare()  # not time that the endpoint lost
        lost, attempt = 0.0, 0
        while True:
            attempt += 1
            began = time.monotonic()
            left = None if deadline is None else deadline + lost - began
            if left is not None and left <= 0:
                raise self._late()
            outcome = self._attempt(route, request, self.patience.request if left is None else left)
            if not isinstance(outcome, Failure):
                return outcome, lost
            lost += time.monotonic() - began
            if outcome.reason == "timeout" and left is not None and left < self.patience.request:
                raise self._late()
            if not outcome.retry:
                raise outcome.error()
            wait = self.patience.wait(attempt, outcome.asked)
            if lost + wait > allowed:
                raise outcome.error(
                    f" ({attempt} attempt(s) in {lost:.1f} s"
                    + (f", then asked to wait {wait:.0f} s" if outcome.asked is not None else "")
                    + f"; waits of up to {allowed:.0f} s are allowed). Repeat later with --crbench-resume "
                    "--crbench-rerun-errors, or with fewer workers."
                )
            time.sleep(wait)
            lost += wait

    def _attempt(self, route: Route, request: dict[str, Any], left: float) -> dict[str, Any] | Failure:
        """Make one HTTP request that ends within ``left`` seconds or the patience for one request."""
        import openai

        limit = min(left, self.patience.request)
        end = time.monotonic() + limit
        own = {k: v for k, v in request.items() if k not in self.extra_body}
        resource = reduce(getattr, route.resource, cast("Any", self._client))
        create = resource.with_streaming_response.create
        try:
            with create(**own, extra_body=dict(self.extra_body) or None, timeout=limit) as response:
                received = bytearray()
                # Endpoints that send white space to keep a connection open never meet a read time-out.
                for chunk in response.iter_bytes():
                    received += chunk
                    if time.monotonic() > end:
                        return self._hanging(limit)
                    if len(received) > _BODY_LIMIT:
                        return self._unreadable(bytes(received[:2000]), "too long", route.noun)
                return self.read_body(route, bytes(received), response.headers.get("content-type", ""))
        except openai.APITimeoutError:
            return self._hanging(limit)
        except openai.APIStatusError as error:
            return of_status(error.status_code, self._said(error), error.response.headers, self._where)
        except _connection_errors() as error:
            if "Timeout" in type(error).__name__ or time.monotonic() > end:
                return self._hanging(limit)
            return self._unconnected(error)

    def read_body(self, route: Route, data: bytes, content_type: str) -> dict[str, Any] | Failure:
        """Return the answer that a body of status 200 holds, or why it is none."""
        try:
            body = plainjson.parse(data)
        except ValueError:
            return self._unreadable(data, content_type or "no content type", route.noun)
        if isinstance(body, dict) and route.key in body and not (body.get("error") and not body[route.key]):
            return body
        if isinstance(body, dict) and body.get("error"):
            # Gateways pass on a provider's failure as 200 with an error object.
            error = body["error"] if isinstance(body["error"], dict) else {"message": body["error"]}
            code = error.get("code")
            status = int(code) if isinstance(code, int) and 400 <= code < 600 else 502
            return of_status(status, self._safe(json.dumps(error)), {}, self._where)
        return self._unreadable(data, f"JSON without {route.key}", route.noun)

    def _said(self, error: Any) -> str:
        body = error.body if isinstance(error.body, (dict, list)) else None
        if body is None:
            return self._safe(decode(error.response.content[:2000])) or "(no text)"
        return self._safe(json.dumps(body, ensure_ascii=False))

    def _unconnected(self, error: Exception) -> Failure:
        cause = error.__cause__ or error
        said = self._safe(f"{type(cause).__name__}: {cause}")
        if _distrusted(error):
            hint = "Trust its certificate (SSL_CERT_FILE), or check --crbench-base-url and your proxy."
            return Failure("certificate", f"no connection to {self._where}: {said}. {hint}", retry=False)
        hint = "Check that it runs and --crbench-base-url."
        return Failure("endpoint", f"no connection to {self._where}: {said}. {hint}", retry=True)

    def _hanging(self, seconds: float) -> Failure:
        return Failure("timeout", f"{self._where} gave no answer within {seconds:.0f} s", retry=True)

    def _unreadable(self, data: bytes, what: str, noun: str = CHAT.noun) -> Failure:
        begins = self._safe(decode(data[:2000])) or "(nothing)"
        message = (
            f"{self._where} answered with what is not a {noun} ({printable(what, 60)}): {begins}. "
            "Check --crbench-base-url (it ends in /v1) and what stands between (a proxy, a sign-in page)."
        )
        return Failure("unreadable", message, retry=False)

    def _late(self) -> DeadlineError:
        return DeadlineError(f"{self._where} was still answering when the time was up", reason="timeout")

    def _tells_secret(self, value: Any) -> bool:
        """Whether a credential stands in what would be stored: altered it would be another answer."""
        text = json.dumps(value, ensure_ascii=False)
        return scrubbed(scrub(text, self.secrets)) != text

    def _safe(self, text: str) -> str:
        return printable(scrub(text, self.secrets), 300)

    @property
    def _where(self) -> str:
        return f"{urls.public(self.base_url)} ({self.model})"

    @cached_property
    def _client(self) -> OpenAI:
        import openai

        # The HTTP package logs URLs, with the password of a login in them, and would put paths after a query.
        bare, login = urls.split_credentials(self.base_url)
        bare, _, query = bare.partition("?")
        try:
            # Our own loop retries: the package's would hide waits from the deadline and the patience.
            return openai.OpenAI(
                api_key=self.key or "unused",
                base_url=bare,
                max_retries=0,
                default_query=dict(parse_qsl(query, keep_blank_values=True)) or None,
                default_headers={"Authorization": f"Basic {urls.basic(login)}"} if login else None,
            )
        except (ValueError, openai.OpenAIError) as error:
            raise InfraError(
                f"cannot make a client for {self._where}: {self._safe(str(error))}", reason="endpoint"
            ) from None


def _distrusted(error: BaseException | None) -> bool:
    """Whether a certificate is what the connection failed for; the packages wrap the error several times."""
    import ssl

    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _connection_errors() -> tuple[type[Exception], ...]:
    """Errors of a connection: the package's own, and those of the HTTP package below while a body is read."""
    import openai

    below = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return (openai.APIConnectionError, OSError, *(m.HTTPError for m in below if m is not None))
