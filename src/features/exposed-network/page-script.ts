import { NAME } from './bridge.js';
import { PART_ENDS } from './exposed-events.js';
import type { ExposedHosts } from './exposed-hosts.js';
import { FETCH_VALUES } from './exposed-streams.js';
import { UPLOAD_VALUES } from './exposed-uploads.js';
import { openBridge, type Replacement } from './page-bridge.js';
import { hideReconnects } from './page-event-source.js';
import { replaceFetch } from './page-fetch.js';
import { replaceUploads } from './page-uploads.js';
import { replaceWebSocket, SAID } from './page-websocket.js';

/** The script that runs in pages and workers before their own ones. */
export function pageScript({ pattern }: ExposedHosts): string {
  const call = <Values>(replace: Replacement<Values>, values: Values) =>
    `(${String(replace)})(bridge, ${JSON.stringify(values)});`;
  return `((bridge) => { if (!bridge) return;
    ${call(replaceWebSocket, SAID)} ${call(replaceFetch, FETCH_VALUES)}
    ${call(hideReconnects, PART_ENDS)} ${call(replaceUploads, UPLOAD_VALUES)}
  })((${String(openBridge)})('${NAME}', ${JSON.stringify(pattern.source)}));`;
}
