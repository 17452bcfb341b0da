/** The task of `map`. */
export default async ({ page, input }) => {
  await page.goto(`data:text/html,<title>${input}</title>`);
  await new Promise((resolve) => setTimeout(resolve, 200));
  return page.title();
};
