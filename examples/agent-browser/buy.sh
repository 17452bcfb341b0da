#!/bin/sh
# Buys in a leased browser with agent-browser. README.md has the command that runs it.
set -e
# An argument (--cdp) could be read by all users of this machine.
export AGENT_BROWSER_CDP="$BROWSER_POOL_CDP_WS_URL"
# Ends its process in the background, which is connected to the browser.
trap 'agent-browser close' EXIT

agent-browser open "data:text/html,<button onclick=\"document.title = 'Bought'\">Buy</button>"
agent-browser snapshot
agent-browser click @e1
agent-browser get title
