import { spawnSync } from 'node:child_process';

export const hasOpenSsl = spawnSync('openssl', ['version']).status === 0;

/** Creates a certificate for 127.0.0.1, service.test and browser.test, with its key. Needs `openssl`. */
export function selfSigned(): { key: string; cert: string } {
  const args =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1,DNS:service.test,DNS:browser.test -keyout -';
  const pem = spawnSync('openssl', args.split(' '), { encoding: 'utf8' }).stdout;
  return { key: pem, cert: pem };
}
