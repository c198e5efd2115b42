import { spawnSync } from 'node:child_process';

const version = spawnSync('openssl', ['version'], { encoding: 'utf8' });

/** Whether this machine has OpenSSL 3, by which verdicts are compared. */
export const hasOpenssl = version.status === 0 && version.stdout.startsWith('OpenSSL 3');

/** A certificate in PEM. */
export const pem = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replaceAll(/.{64}/g, '$&\n').trimEnd()}\n-----END CERTIFICATE-----\n`;
