/** Chrome DevTools Protocol, or WebDriver BiDi. */
export type Protocol = 'cdp' | 'bidi';

export const PROTOCOLS: readonly Protocol[] = ['cdp', 'bidi'];
