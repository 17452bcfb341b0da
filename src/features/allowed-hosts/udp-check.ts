import type { CdpClient } from '../../wire/cdp-client.js';
import { raceTimeout } from '../../shared/abort.js';

/** Time in ms for WebRTC to look for its addresses, which ends at once where it may open no port. */
const CHECK_TIMEOUT = 5000;

/** Posts whether WebRTC opened a port. Nothing leaves the machine: it requests its own address at a closed port of this machine. */
const CHECK = `
  const post = (opened) => parent.postMessage(opened, '*');
  const connection = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:1' }] });
  connection.onicecandidate = ({ candidate }) => post(candidate?.candidate ? 'port' : 'none');
  connection.onicecandidateerror = () => post('port');
  connection.createDataChannel('');
  connection.createOffer().then((offer) => connection.setLocalDescription(offer));`;

/**
 * An expression for a page that resolves to the first message of a script in a sandboxed frame. A service can change WebRTC in its pages, and
 * not in sandboxed frames.
 */
export function inSandbox(script: string): string {
  return `new Promise((resolve) => {
  const srcdoc = ${JSON.stringify(`<script>${script}</script>`)};
  const frame = Object.assign(document.createElement('iframe'), { sandbox: 'allow-scripts', srcdoc });
  addEventListener('message', ({ data }) => resolve(data), { once: true });
  document.body.append(frame);
}).finally(() => document.querySelector('iframe').remove())`;
}

/**
 * Checks whether WebRTC can send in a page without a guard: a Chromium whose flags forbid UDP past a proxy opens no port.
 *
 * @param proxy The parameters of a context whose proxy is dead.
 * @returns False only if the browser has shown that it can not.
 */
export async function canSendUdp(cdp: CdpClient, proxy: object): Promise<boolean> {
  const context = { ...proxy, disposeOnDetach: true };
  const { browserContextId } = await cdp.send('Target.createBrowserContext', context);
  try {
    const session = await cdp.attach(await cdp.openPage({ browserContextId }));
    const check = async () =>
      cdp.send('Runtime.evaluate', { expression: inSandbox(CHECK), awaitPromise: true }, session);
    const late = () => new Error('WebRTC did not end in time.');
    const { result } = await raceTimeout(CHECK_TIMEOUT, check, late);
    return result.value !== 'none';
  } catch {
    return true;
  } finally {
    await cdp.send('Target.disposeBrowserContext', { browserContextId }).catch(() => {});
  }
}
