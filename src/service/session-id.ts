import { isRecord, parseJson } from '../shared/json.js';
import { pathSegmentFault } from './checks.js';

/** The session id in a body that is no valid session: whoever can read it owes a release. */
export function readableSessionId(body: string): string | undefined {
  const id = idOfJson(body) ?? idOfText(body);
  return pathSegmentFault(id) ? undefined : (id as string);
}

function idOfJson(body: string): unknown {
  try {
    const json = parseJson(body);
    return isRecord(json) ? json['session_id'] : undefined;
  } catch {
    return undefined;
  }
}

function idOfText(body: string): unknown {
  const text = /"session_id"\s*:\s*("(?:[^"\\]|\\.)+")/.exec(body)?.[1];
  try {
    return text && JSON.parse(text);
  } catch {
    return undefined;
  }
}
