"""An agent of browser-use reads the first line of a page in a leased browser. README.md has the commands that run it."""

import asyncio
import os
import re
import sys

from browser_use import Agent, Browser
from browser_use.llm.views import ChatInvokeCompletion


class ScriptedModel:
    """Replaces a real model, so that the example needs no API key: use one of browser_use, such as ChatOpenAI."""

    model = model_name = name = provider = "scripted"

    def __init__(self, url):
        self.url = url

    async def ainvoke(self, messages, output_format=None, **_):
        # The last message has the results of earlier actions, and the text of the page.
        text = messages[-1].text
        if "Navigated to" in text:
            [line] = re.findall(r"\[Start of page\]\n(.+)", text)
            action = {"done": {"text": line, "success": True}}
        else:
            action = {"navigate": {"url": self.url}}
        answer = {"evaluation_previous_goal": "", "memory": "", "next_goal": "", "action": [action]}
        return ChatInvokeCompletion(completion=output_format.model_validate(answer), usage=None)


async def main():
    url, *address = sys.argv[1:]
    # An address of `pooled-browser proxy`, or that of `exec`.
    [cdp_url] = address or [os.environ["BROWSER_POOL_CDP_WS_URL"]]
    agent = Agent(
        "What is the first line of the page?",
        llm=ScriptedModel(url),
        browser=Browser(cdp_url=cdp_url),
        use_vision=False,
        use_judge=False,
    )
    history = await agent.run(max_steps=5)
    print(f"browser-use read: {history.final_result()}")


asyncio.run(main())
