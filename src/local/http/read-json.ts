import type { IncomingMessage } from 'node:http';
import { isRecord, parseJson } from '../../shared/json.js';
import { badRequest, HttpFault } from './http-fault.js';

/** Far above any request of this interface. */
const MOST_BYTES = 1024 * 1024;

/** The body as a JSON object; an empty body is an empty object, since each field of an acquire is optional. */
export async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
  const text = await readText(request);
  if (text.trim() === '') return {};
  const body = parse(text);
  if (!isRecord(body)) throw badRequest('The body must be a JSON object.', ['body: must be an object']);
  return body;
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The default would destroy the socket with the stream, and the client would never see the response.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw tooLarge(request);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The rest is read and dropped: a client that is still sending would not read the response. */
function tooLarge(request: IncomingMessage): HttpFault {
  request.resume();
  const message = `The body is larger than ${MOST_BYTES} bytes.`;
  return new HttpFault(413, 'payload_too_large', message, { headers: { connection: 'close' } });
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw badRequest('The body is not JSON.', ['body: must be JSON']);
  }
}
