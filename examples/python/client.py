"""Opens a URL in a browser of `pooled-browser exec`, or at an address of `proxy`, and prints its title. Needs websockets."""

import json
import os
import sys

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect


LOADED = """
new Promise((loaded) => document.readyState === 'complete' ? loaded() : addEventListener('load', loaded))
"""


class Page:
    """The first page of a browser, over the Chrome DevTools Protocol."""

    def __init__(self, socket):
        self.socket = socket
        self.count = 0
        self.session = None
        # The WebSocket is that of the browser: commands for a page need a session.
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]

    def call(self, method, **params):
        """Sends a command and returns its result. Events are skipped."""
        self.count += 1
        command = {"id": self.count, "method": method, "params": params}
        self.socket.send(json.dumps({**command, "sessionId": self.session} if self.session else command))
        while (message := json.loads(self.socket.recv())).get("id") != self.count:
            pass
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return message["result"]

    def goto(self, url):
        if failure := self.call("Page.navigate", url=url).get("errorText"):
            raise SystemExit(f"{url} could not be opened: {failure}")
        self.evaluate(LOADED)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return answer["result"].get("value")


def main():
    url, *address = sys.argv[1:]
    [address] = address or [os.environ["BROWSER_POOL_CDP_WS_URL"]]
    try:
        # A screenshot is larger than the largest message that is accepted by default.
        with connect(address.replace("http", "ws", 1), max_size=None) as socket:
            page = Page(socket)
            page.goto(url)
            print(f"websockets read: {page.evaluate('document.title')}")
    except InvalidStatus as error:
        # For example: no browser became free, or another client uses the browser of this name.
        body = (error.response.body or b"").decode().strip()
        raise SystemExit(f"No browser (status {error.response.status_code}): {body}") from None
    except ConnectionClosed as error:
        # For example: the lease reached its lifetime.
        raise SystemExit(f"The connection was closed: {error.rcvd.reason if error.rcvd else 'without a reason'}") from None


if __name__ == "__main__":
    main()
