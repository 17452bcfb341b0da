"""Opens a page in a browser of `pooled-browser exec` or `proxy`, and prints its title. Standard library only."""

import base64
import itertools
import json
import os
import socket
import ssl
import struct
import sys
from urllib.parse import urlsplit


class Browser:
    """The Chrome DevTools Protocol over a websocket (RFC 6455): as little of both as this takes."""

    def __init__(self, url):
        address = urlsplit(url)
        secure = address.scheme == "wss"
        port = address.port or (443 if secure else 80)
        self.socket = socket.create_connection((address.hostname, port), timeout=30)
        if secure:
            context = ssl.create_default_context()
            self.socket = context.wrap_socket(self.socket, server_hostname=address.hostname)
        self.input = self.socket.makefile("rb")
        self.ids = itertools.count(1)
        self.upgrade(address)

    def upgrade(self, address):
        lines = [
            f"GET {address.path or '/'}?{address.query} HTTP/1.1",
            f"Host: {address.netloc}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        ]
        self.socket.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
        status = self.input.readline().decode().strip()
        if status.split(" ")[1:2] != ["101"]:
            raise ConnectionError(f"The browser refused the websocket: {status}")
        while self.input.readline().strip():
            pass

    def call(self, method, session=None, **params):
        """Sends a command and returns its result; events that come in between are passed over."""
        command = {"id": next(self.ids), "method": method, "params": params}
        if session:
            command["sessionId"] = session
        self.send(0x1, json.dumps(command).encode())
        while True:
            message = json.loads(self.receive())
            if message.get("id") == command["id"]:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]

    def send(self, opcode, payload):
        size = len(payload)
        if size < 126:
            length = bytes([0x80 | size])
        elif size < 1 << 16:
            length = struct.pack("!BH", 0x80 | 126, size)
        else:
            length = struct.pack("!BQ", 0x80 | 127, size)
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
        self.socket.sendall(bytes([0x80 | opcode]) + length + mask + masked)

    def receive(self):
        message = b""
        while True:
            first, second = self.read(2)
            size = second & 0x7F
            if size >= 126:
                size = int.from_bytes(self.read(2 if size == 126 else 8), "big")
            payload = self.read(size)
            opcode = first & 0x0F
            if opcode == 0x9:
                self.send(0xA, payload)  # a ping
            elif opcode in (0x0, 0x1):
                message += payload
                if first & 0x80:
                    return message

    def read(self, size):
        data = self.input.read(size)
        if len(data) < size:
            raise ConnectionError("The browser closed the websocket.")
        return data


TITLE = """
new Promise((loaded) => document.readyState === 'complete' ? loaded() : addEventListener('load', loaded))
  .then(() => document.title)
"""


def main():
    url = sys.argv[1] if len(sys.argv) > 1 else "data:text/html,<title>Hello from Python</title>"
    browser = Browser(os.environ["BROWSER_POOL_CDP_WS_URL"])
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    page = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    failure = browser.call("Page.navigate", page, url=url).get("errorText")
    if failure:
        raise SystemExit(f"{url} could not be opened: {failure}")
    title = browser.call("Runtime.evaluate", page, expression=TITLE, awaitPromise=True)
    print(f"Python read: {title['result']['value']}")


main()
