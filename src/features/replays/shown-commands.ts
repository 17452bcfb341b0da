import type { Layer } from '../../wire/layer.js';
import { shortenUrls } from '../../shared/redact.js';

/** The commands by which a client without an automation library acts, with the parameter that is shown. */
const SHOWN: Readonly<Record<string, string | undefined>> = {
  'Page.navigate': 'url',
  'Page.reload': '',
  'Page.navigateToHistoryEntry': '',
  'Page.captureScreenshot': '',
  'Page.printToPDF': '',
  'Page.handleJavaScriptDialog': '',
  'Input.dispatchMouseEvent': 'type',
  'Input.dispatchKeyEvent': 'type',
  'Input.dispatchTouchEvent': 'type',
  'Input.insertText': '',
  'Runtime.evaluate': '',
  'Runtime.callFunctionOn': '',
  'DOM.setFileInputFiles': '',
  'Target.createTarget': 'url',
  'Target.closeTarget': '',
  'browsingContext.navigate': 'url',
  'browsingContext.reload': '',
  'browsingContext.create': '',
  'browsingContext.close': '',
  'browsingContext.captureScreenshot': '',
  'browsingContext.handleUserPrompt': '',
  'input.performActions': '',
  'input.setFiles': '',
  'script.evaluate': '',
  'script.callFunction': '',
};

/** Characters. */
const LONGEST_URL = 300;

/** A moving mouse is no action. */
const UNSHOWN_TYPES = new Set(['mouseMoved', 'mouseReleased', 'keyUp', 'touchMove', 'touchEnd']);

/** A client that waits for something in a page asks again and again. */
const ASKS = /^(?:Runtime|script)\./;

/** Shows the commands of clients that no automation library reports. */
export function shownCommands(note: (text: string) => void): Layer {
  let last: string | undefined;
  return {
    name: 'shown-commands',
    commands: {
      '*': ({ method, params }, next) => {
        const name = Object.hasOwn(SHOWN, method) ? SHOWN[method] : undefined;
        if (name !== undefined) {
          const value: unknown = (params as Record<string, unknown>)[name];
          const shown =
            typeof value === 'string' ? ` ${name === 'url' ? shortenUrls(value, LONGEST_URL) : value}` : '';
          const isAgain = method === last && ASKS.test(method);
          if (!UNSHOWN_TYPES.has(String(value)) && !isAgain) note(`${method}${shown}`);
          last = method;
        }
        return next();
      },
    },
  };
}
