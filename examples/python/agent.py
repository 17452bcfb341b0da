"""Opens a page in a browser of `pooled-browser proxy`, with Playwright for Python, and prints its title."""

import sys

from playwright.sync_api import sync_playwright

url, address = sys.argv[1:]

with sync_playwright() as playwright:
    browser = playwright.chromium.connect_over_cdp(address)
    page = browser.contexts[0].pages[0]
    page.goto(url)
    print(f"Playwright for Python read: {page.title()}")
    browser.close()
