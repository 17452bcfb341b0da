import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startCli } from '../../cli/support.js';
import { usePerson } from '../../local/pages/support.js';
import { useLocalPool } from '../../support/local.js';
import { variablesOf, type Program } from '../../support/program.js';
import { answer } from './support.js';

const used = useLocalPool();
const person = usePerson();

/** Defines a function that prints the status and the body of a response as a line of JSON. It uses the standard library only. */
const ASK = `
import json, os, urllib.error, urllib.request

def ask(body, method="POST", content_type="application/json"):
    url = os.environ["BROWSER_POOL_HANDOFF_URL"]
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": content_type}, method=method)
    try:
        with urllib.request.urlopen(request) as response:
            print(json.dumps([response.status, json.load(response)]), flush=True)
    except urllib.error.HTTPError as error:
        print(json.dumps([error.code, json.load(error)]), flush=True)

`;

/** Starts a program of Python under `exec`. */
function startPython(script: string): Program {
  const file = join(mkdtempSync(join(tmpdir(), 'python-')), 'program.py');
  writeFileSync(file, ASK + script);
  return startCli(['exec', 'test', '--', 'python3', file], variablesOf(used.local));
}

async function printed(program: Program): Promise<unknown[]> {
  const { code, stdout, stderr } = await program.ended;
  expect(code, stderr).toBe(0);
  const lines = stdout.trim().split('\n');
  return lines.map((line) => JSON.parse(line) as unknown);
}

it('a Python program under exec asks a person, and receives the status and the note', async () => {
  const program = startPython('ask({"message": "Prüfe das Konto \\u20ac."})');
  const [, url] = await program.prints(/A person is needed: Prüfe das Konto €\.\s+Open (\S+)/);
  await answer(await person.open(url!), 'Cannot be done', 'Kein Guthaben €');
  expect(await printed(program)).toEqual([[200, { status: 'declined', note: 'Kein Guthaben €' }]]);
});

it('a Python program under exec learns why its request is refused, and that nobody has answered', async () => {
  const program = startPython(`
ask(b"hello")
ask([])
ask({})
ask({"message": "   "})
ask({"message": "a", "url": "b"})
ask({"message": "a", "timeout": "soon"})
ask({"message": "a" * 5_000_000})
ask({"message": "a"}, content_type="application/x-www-form-urlencoded")
ask(None, method="PUT")
ask({"message": "Nobody is here", "timeout": 300})
`);
  const sentence = (part: string) => ({
    error: expect.stringMatching(new RegExp(`${part}.*\\.$`)) as string,
  });
  expect(await printed(program)).toEqual([
    [400, sentence('object')],
    [400, sentence('object')],
    [400, sentence('message')],
    [400, sentence('message')],
    [400, sentence('url')],
    [400, sentence('timeout')],
    [413, sentence('bytes')],
    [415, sentence('application/json')],
    [405, sentence('POST')],
    [408, sentence('Nobody answered')],
  ]);
});
