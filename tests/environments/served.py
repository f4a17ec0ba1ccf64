#!/usr/bin/env python3
"""A service for env_http.so. It first prints its port. It takes our lines in a POST to /play, and OpenEnv's messages on a WebSocket
at /ws. The game counts the bytes of an episode's turns and ends the episode at 10.

served.py FAULTS CALL [STEP MOST COUNT]
FAULTS is a list with + between: none, half, drop, status, nonsense, huge, error, late; of form=openenv only the names in SOCKET_FAULTS,
"reward:JSON" and "done:JSON". The service commits the first fault at the CALL-th
message or request after the first one. With STEP, it commits the next fault STEP calls later, and so on, MOST faults in all. The file COUNT
then has the numbers of calls and faults.
"""
import base64
import hashlib
import json
import os
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

kinds, at = sys.argv[1].split("+"), int(sys.argv[2])
step, most = map(int, sys.argv[3:5] if len(sys.argv) > 3 else (0, 1))
SOCKET_FAULTS = ("pongflood", "pingflood", "contflood", "dripflood", "reserved", "binary", "continuation", "inside", "longping", "closed_handshake", "hanging_handshake",
                 "wrong_accept")
games, calls, faults, lock = {}, 0, 0, threading.Lock()
held = threading.Event()  # a turn "hold" is answered after a turn "release"
sockets, rude = 0, 0 # that are open; that ended without a close frame


def due():
    global calls, faults
    with lock:
        calls += 1
        if calls < at or (calls - at) % (step or 1 << 30) or faults == most:
            return None
        faults += 1
        if step:
            with open(sys.argv[5], "w") as f:
                f.write(f"{calls} {faults}")
        return kinds[(faults - 1) % len(kinds)]


def play(game, text):
    game[0] += len(text.encode())
    return {"said": f"{game[0]}.", "reward": game[0] / 2, "done": game[0] >= 10}


def answer(line):
    if "hello" in line:
        return {"finish": True}
    if "reset" in line:
        games[line["reset"]] = [line["seed"] % 3]
        return {"episode": line["reset"], "say": f"{games[line['reset']][0]}, {line['prompt']}?"}
    if "finish" in line:
        return {"episode": line["finish"], "reward": 100}
    out = play(games[line["step"]], line["text"])
    said = {"episode": line["step"], "reward": out["reward"]}
    return {**said, "done": True, "verdict": "right"} if out["done"] else {**said, "say": out["said"]}


def count(more_sockets, more_rude):
    global sockets, rude
    with lock:
        sockets += more_sockets
        rude += more_rude


class Serve(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ended = False # 1: the client has sent a close frame

    def log_message(self, *args):
        pass

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        wrong = due() if "hello" not in text else None
        lines = [json.dumps(answer(json.loads(line))) for line in text.splitlines()]
        body = "\n".join(lines[: len(lines) // 2] if wrong == "half" else lines).encode()
        if wrong == "nonsense":
            body = b"}{"
        if wrong == "huge":
            body = b"x" * (5 << 20)
        if wrong == "late":
            time.sleep(8)
        if wrong == "drop":
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        self.send_response(404 if wrong == "status" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        key = self.headers.get("Sec-WebSocket-Key", "")
        if self.path != "/ws" or len(base64.b64decode(key)) != 16:
            return self.send_error(404)
        if kinds[0] in ("closed_handshake", "hanging_handshake") and due():
            self.close_connection = True
            if kinds[0] == "hanging_handshake":
                time.sleep(8)
            return self.connection.shutdown(socket.SHUT_RDWR)
        accept = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        wrong = kinds[0] == "wrong_accept" and due()
        self.send_header("X-Accept" if wrong else "Sec-WebSocket-Accept", base64.b64encode(accept).decode())
        self.end_headers()
        self.close_connection = True
        count(1, 0)
        try:
            self.serve_socket()
        finally:
            count(-1, 0)

    def serve_socket(self):
        game = [0]
        while (message := self.receive()) is not None and message["type"] != "close":
            if message["type"] == "reset":
                game = [message["data"]["seed"] % 3]
                data = {"observation": {"text": f"{game[0]}?", "done": False}, "reward": None, "done": False}
            elif message["data"]["message"] == "invalid":
                fault = {"type": "enum", "loc": ["message"], "msg": "Input should be 'a' or 'b'"}
                error = {"message": "Invalid message", "code": "VALIDATION_ERROR", "errors": [fault, {"loc": [0, str(message["data"].get("n", "x"))]}]}
                self.send(json.dumps({"type": "error", "data": error}).encode(), op=1)
                continue
            elif message["data"]["message"] == "illegal":
                error = {"message": "the field is taken", "code": "EXECUTION_ERROR"}
                self.send(json.dumps({"type": "error", "data": error}).encode(), op=1)
                continue
            elif message["data"]["message"] == "hold" and not held.wait(60):
                return
            elif message["data"]["message"] == "long":
                data = {"observation": {"text": -12345678901234567890, "few": 3}, "reward": 1 << 70, "done": False}
            else:
                if message["data"]["message"] == "release":
                    held.set()
                out = play(game, message["data"]["message"])
                data = {"observation": {"text": out["said"]}, "reward": out["reward"], "done": out["done"]}
            if not self.reply(due(), {"type": "observation", "data": data}):
                return
        if message is not None: # it has said "close"
            self.receive()
        count(0, not self.ended)

    def reply(self, wrong, message):
        name, _, value = (wrong or "").partition(":")
        if name in ("reward", "done"):
            message["data"][name] = json.loads(value)
        text = json.dumps(message)
        self.send(b"are you there?", op=9)
        if name in SOCKET_FAULTS:
            return self.misbehave(name, text.encode())
        if wrong == "drop":
            return False
        if wrong == "late":
            time.sleep(8)
        if wrong == "nonsense":
            text = "}{"
        if wrong == "error":
            text = json.dumps({"type": "error", "data": {"message": "no", "code": "EXECUTION_ERROR"}})
        if wrong == "huge":
            text = "x" * (5 << 20)
        if wrong == "half":
            self.wfile.write(b"\x81\x7d{")
            return False
        half = len(text) // 2 # in two frames, with a ping between
        self.send(text[:half].encode(), op=1, last=0)
        self.send(b"", op=9)
        self.send(text[half:].encode(), op=0)
        return True

    def misbehave(self, name, text):
        floods = {"pongflood": b"\x8a\x00", "pingflood": b"\x89\x00", "contflood": b"\x00\x00", "dripflood": b"\x00\x01 "}
        if name in floods:
            self.wfile.write(b"\x01\x00")  # a message begins
            try:
                while True:
                    self.wfile.write(floods[name] * 20000)
            except OSError:
                return False
        if name == "reserved":
            self.send(b"", op=3)
        if name == "continuation":
            self.send(text, op=0)
        if name == "inside":
            self.send(text[:1], op=1, last=0)
        if name == "longping":
            self.send(b"x" * 126, op=9)
        self.send(text, op=2 if name == "binary" else 1)
        return True

    def send(self, data, op, last=1):
        n = len(data)
        head = bytes([last << 7 | op]) + (bytes([n]) if n < 126 else struct.pack(">BH", 126, n) if n < 65536 else struct.pack(">BQ", 127, n))
        self.wfile.write(head + data)
        self.wfile.flush()

    def receive(self):
        while True:
            head = self.rfile.read(2)
            if len(head) < 2:
                return None
            n = head[1] & 127
            if n > 125:
                n = int.from_bytes(self.rfile.read(2 if n == 126 else 8), "big")
            mask, data = self.rfile.read(4), self.rfile.read(n)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
            if head[0] & 15 == 1:
                return json.loads(data)
            if head[0] & 15 == 8:
                self.ended = int.from_bytes(data, "big") == 1000
                return None
            assert head[0] & 15 == 10, head # pongs


server = ThreadingHTTPServer(("127.0.0.1", 0), Serve)
server.daemon_threads = True
print(server.server_port, flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown())).start()
server.serve_forever()
for _ in range(100):
    if not sockets:
        break
    time.sleep(0.05)
os._exit(rude > 0)
