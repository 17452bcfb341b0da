/**
 * Milliseconds that each acquire request asks to wait. Ctrl-C waits for the answer to the one that is under way: a
 * grant that nobody hears is a lost browser. Docker gives a program ten seconds after SIGTERM.
 */
export const POLL_TIMEOUT = 5000;
