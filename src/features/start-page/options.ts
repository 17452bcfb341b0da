/** Its events. */
export interface StartPageSteps {
  /** The URL of `startUrl` could not be opened: the callback begins with the page as it is. */
  'start-url-failed': { sessionId: string; url: string; error: Error };
}
