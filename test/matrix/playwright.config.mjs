export default { testMatch: 'fixtures.playwright.mjs', reporter: 'list', timeout: 60_000 };
