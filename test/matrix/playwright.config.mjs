export default { testMatch: 'fixtures.playwright.mjs', reporter: 'list' };
