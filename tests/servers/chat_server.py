"""A chat-completions server on 127.0.0.1 that does what a test tells it to, good or bad.

    with ChatServer([status(429, headers={"Retry-After": "1"}), say("hello")]) as server:
        model = make_model("openai:test", settings=ModelSettings(base_url=server.url))

The script is a list of answers, the last one repeated, or a function of the request. Every request
is kept in ``requests`` with the time it came.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Request:
    """One request as it came: headers (lower case), JSON body, seconds on the monotonic clock, path."""

    headers: dict[str, str]
    body: dict[str, Any]
    time: float
    path: str

    @property
    def text(self) -> str:
        """All messages as one text."""
        return "\n".join(message["content"] or "" for message in self.body["messages"])


@dataclass(frozen=True)
class Answer:
    """A reply of the server.

    Attributes:
        body: A JSON value, or bytes sent as they are.
        delay: Seconds of silence before the headers.
        forever: Bytes sent again and again after the body, never ending the reply.
        pause: Seconds between those.
        drop: Close the connection without a word.
        unsupported: 400 in this answer's place if the request has one of these parameters.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    delay: float = 0.0
    forever: bytes = b""
    pause: float = 0.0
    drop: bool = False
    unsupported: tuple[str, ...] = ()


Script = Sequence[Answer] | Callable[[Request], Answer]


def say(
    text: str | None = None,
    *,
    arguments: Any = None,
    finish: str | None = None,
    usage: dict[str, Any] | None = None,
    refusal: str | None = None,
    **how: Any,
) -> Answer:
    """A chat completion with a text, or with ``arguments`` as the call of the tool asked for."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if refusal is not None:
        message["refusal"] = refusal
    if arguments is not None:
        given = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function = {"name": "tool", "arguments": given}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    reason = finish or ("tool_calls" if arguments is not None else "stop")
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "test",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }
    return Answer(body | ({"usage": usage} if usage else {}), **how)


def status(code: int, message: str = "no", *, param: str | None = None, kind: str = "", **how: Any) -> Answer:
    """An error in OpenAI's form."""
    error = {"message": message, "type": "error", "param": param, "code": kind or None}
    return Answer({"error": error}, status=code, **how)


def tokens(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    """A usage block in OpenAI's form."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


class ChatServer:
    """The server; a context manager. ``url`` is its base URL."""

    def __init__(self, script: Script, *, port: int = 0) -> None:
        self.script = script
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: Request) -> Answer:
        """The answer to the request, which is kept."""
        with self._lock:
            place = len(self.requests)
            self.requests.append(request)
            if callable(self.script):
                answer = self.script(request)
            else:
                answer = self.script[min(place, len(self.script) - 1)]
        refused = next((name for name in answer.unsupported if name in request.body), None)
        if refused is not None:
            return status(
                400, f"Unsupported parameter: '{refused}'.", param=refused, kind="unsupported_parameter"
            )
        return answer

    def wait(self, seconds: float) -> bool:
        """Wait; True once the server stops."""
        return self._stopped.wait(seconds)


def closed_port() -> int:
    """A port on 127.0.0.1 where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _handler(server: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are two writes: 40 ms apart otherwise

        def log_message(self, *args: Any) -> None:
            """Tests need no access log."""

        def do_GET(self) -> None:
            """The list of models, as a client asks for to see whether anybody is there."""
            self._send(Answer({"object": "list", "data": []}), {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = {name.lower(): value for name, value in self.headers.items()}
            answer = server.answer(Request(asked, body, time.monotonic(), self.path))
            stopped = server.wait(answer.delay) if answer.delay else False
            try:
                if stopped:
                    self.close_connection = True  # a server that ends leaves nobody waiting
                else:
                    self._send(answer, body)
            except OSError:  # the client has left, as some tests want it to
                self.close_connection = True

        def _send(self, answer: Answer, asked: dict[str, Any]) -> None:
            if answer.drop:
                self.close_connection = True
                return
            if asked.get("stream") and answer.status == 200 and isinstance(answer.body, dict):
                self._start(answer, "text/event-stream")
                self._events(answer, asked)
                return
            data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self._start(answer, answer.content_type, None if answer.forever else len(data))
            self.wfile.write(data)
            while answer.forever and not server.wait(answer.pause):
                self.wfile.write(answer.forever)

        def _start(self, answer: Answer, content_type: str, length: int | None = None) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", content_type)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if length is None:
                self.send_header("Connection", "close")
                self.close_connection = True
            else:
                self.send_header("Content-Length", str(length))
            self.end_headers()

        def _events(self, answer: Answer, asked: dict[str, Any]) -> None:
            """The completion as a stream of chunks, a word each."""
            choice = answer.body["choices"][0]
            words = (choice["message"]["content"] or "").split(" ")
            parts = [{"content": word if i == 0 else f" {word}"} for i, word in enumerate(words)]
            head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test"}
            chunks: list[dict[str, Any]] = [
                {"choices": [{"index": 0, "delta": part, "finish_reason": None}]} for part in parts
            ]
            chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
            if (asked.get("stream_options") or {}).get("include_usage") and "usage" in answer.body:
                chunks.append({"choices": [], "usage": answer.body["usage"]})
            for chunk in chunks:
                self.wfile.write(f"data: {json.dumps(head | chunk)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

    return Handler
