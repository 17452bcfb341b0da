import type { CdpClient } from '../../wire/cdp-client.js';
import { raceTimeout } from '../../shared/abort.js';

/** Time in ms for WebRTC to look for its addresses, which ends at once where it may open no port. */
const TRIAL_TIMEOUT = 5000;

/** Posts whether WebRTC opened a port. Nothing leaves the machine: it asks for its own address at a closed port of this machine. */
const TRIAL = `<script>
  const post = (opened) => parent.postMessage(opened, '*');
  const connection = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:1' }] });
  connection.onicecandidate = ({ candidate }) => post(candidate?.candidate ? 'port' : 'none');
  connection.onicecandidateerror = () => post('port');
  connection.createDataChannel('');
  connection.createOffer().then((offer) => connection.setLocalDescription(offer));
</script>`;

/** Resolves to what the trial posts first. A service can change WebRTC in its pages, and not in sandboxed frames. */
const IN_SANDBOX = `new Promise((resolve) => {
  const srcdoc = ${JSON.stringify(TRIAL).replaceAll('</', String.raw`<\/`)};
  const frame = Object.assign(document.createElement('iframe'), { sandbox: 'allow-scripts', srcdoc });
  addEventListener('message', ({ data }) => resolve(data), { once: true });
  document.body.append(frame);
})`;

/**
 * Tries whether WebRTC can send in a page that nobody guards: where Chromium was told to use no UDP past a proxy, it opens no port.
 *
 * @param proxy The parameters of a context whose proxy is dead.
 * @returns False only if the browser has shown that it can not.
 */
export async function canSend(cdp: CdpClient, proxy: object): Promise<boolean> {
  const context = { ...proxy, disposeOnDetach: true };
  const { browserContextId } = await cdp.send('Target.createBrowserContext', context);
  try {
    const session = await cdp.attach(await cdp.openPage({ browserContextId }));
    const trial = async () =>
      cdp.send('Runtime.evaluate', { expression: IN_SANDBOX, awaitPromise: true }, session);
    const { result } = await raceTimeout(
      TRIAL_TIMEOUT,
      trial,
      () => new Error('WebRTC did not end in time.'),
    );
    return result.value !== 'none';
  } catch {
    return true;
  } finally {
    await cdp.send('Target.disposeBrowserContext', { browserContextId }).catch(() => {});
  }
}
