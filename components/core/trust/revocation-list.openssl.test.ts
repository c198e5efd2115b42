import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseCertificate } from './certificate.ts';
import { judgeRevocation, verifyRevocationList } from './revocation-list.ts';
import {
  basicConstraints,
  chainDers,
  chainTimeMs,
  dayMs,
  ecKey,
  keyUsage,
  rsaKey,
  type TestKey,
} from './testing/chains.ts';
import { hasOpenssl, pem } from './testing/openssl.ts';
import { distributionPoint, distributionPoints } from './testing/revocation.ts';

const address = 'http://lists.example/1.crl';
const [leafKey, ecIssuer, otherKey, rsaIssuer] = [
  ecKey('P-256'),
  ecKey('P-256'),
  ecKey('P-256'),
  rsaKey(2048),
];

/** A list of `openssl ca`: what its authority revoked, and the extensions of the list. */
interface Case {
  readonly name: string;
  readonly verdict: 'Good' | 'Revoked' | 'Unavailable';
  /** That of OpenSSL, where ours is stricter. */
  readonly theirs?: 'Good';
  /** Serial numbers in hexadecimal with their reasons. */
  readonly revoked?: Readonly<Record<string, string>>;
  /** Lines of the section of extensions. */
  readonly extensions?: string;
  readonly point?: string;
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly signer?: TestKey;
  readonly issuer?: TestKey;
  readonly digest?: string;
  readonly usages?: readonly number[];
}

const scoped = (point: string) => ({ extensions: 'issuingDistributionPoint=critical,@point', point });
const own = { '01': 'keyCompromise' };

const CASES: readonly Case[] = [
  { name: 'empty', verdict: 'Good' },
  { name: 'other certificates', verdict: 'Good', revoked: { '02': 'superseded', '0101': '' } },
  { name: 'this certificate', verdict: 'Revoked', revoked: { '07': '', ...own } },
  { name: 'this certificate without a reason', verdict: 'Revoked', revoked: { '01': '' } },
  { name: 'on hold', verdict: 'Revoked', revoked: { '01': 'certificateHold' } },
  { name: 'RSA', verdict: 'Good', issuer: rsaIssuer },
  { name: 'RSA, revoked', verdict: 'Revoked', issuer: rsaIssuer, revoked: own },
  { name: 'SHA-384', verdict: 'Revoked', digest: 'sha384', revoked: own },
  { name: 'expired', verdict: 'Unavailable', fromMs: chainTimeMs - 3 * dayMs, toMs: chainTimeMs - dayMs },
  {
    name: 'of a later time',
    verdict: 'Unavailable',
    fromMs: chainTimeMs + dayMs,
    toMs: chainTimeMs + 2 * dayMs,
  },
  { name: 'signed by another key', verdict: 'Unavailable', signer: otherKey, revoked: own },
  { name: 'key signs no lists', verdict: 'Unavailable', usages: [5], revoked: own },
  { name: 'number', verdict: 'Good', extensions: 'authorityKeyIdentifier=issuer:always' },
  { name: 'leaves only', verdict: 'Revoked', revoked: own, ...scoped('onlyuser=TRUE') },
  { name: 'authorities only', verdict: 'Unavailable', revoked: own, ...scoped('onlyCA=TRUE') },
  { name: 'attributes only', verdict: 'Unavailable', ...scoped('onlyAA=TRUE') },
  { name: 'its name', verdict: 'Revoked', revoked: own, ...scoped(`fullname=URI:${address}`) },
  { name: 'another name', verdict: 'Unavailable', ...scoped('fullname=URI:http://lists.example/2.crl') },
  { name: 'some reasons', verdict: 'Unavailable', ...scoped('onlysomereasons=keyCompromise') },
  { name: 'unknown critical', verdict: 'Unavailable', extensions: '1.3.6.1.4.1.99999.7=critical,ASN1:NULL' },
  {
    name: 'changes only',
    verdict: 'Unavailable',
    theirs: 'Good',
    extensions: '2.5.29.27=critical,ASN1:INTEGER:1',
  },
];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'chancery-lists-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function openssl(...input: readonly string[]): string {
  const { stdout, stderr } = spawnSync('openssl', input, { cwd: folder, encoding: 'utf8' });
  return `${stdout}${stderr}`;
}

const stamp = (ms: number) => `${new Date(ms).toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`;

function certificatesOf({ issuer = ecIssuer, usages = [5, 6] }: Case): readonly [Buffer, Buffer] {
  const [leaf = Buffer.of(), anchor = Buffer.of()] = chainDers('lists', [leafKey, issuer], {
    0: {
      extensions: [basicConstraints(false), keyUsage(0), distributionPoints(distributionPoint([address]))],
    },
    1: { extensions: [basicConstraints(true), keyUsage(...usages)] },
  });
  return [leaf, anchor];
}

/** Writes the list of a case as `openssl ca` does. */
function writeList(listed: Case, anchor: Buffer): void {
  const { revoked = {}, extensions, point = '', digest = 'sha256' } = listed;
  const {
    issuer = ecIssuer,
    signer = issuer,
    fromMs = chainTimeMs - dayMs,
    toMs = chainTimeMs + dayMs,
  } = listed;
  const write = (name: string, text: string | Buffer) => writeFileSync(join(folder, name), text);
  const [until, since] = [stamp(chainTimeMs + dayMs).slice(2), stamp(fromMs).slice(2)];
  const lines = Object.entries(revoked).map(
    ([serial, reason]) => `R\t${until}\t${since}${reason && `,${reason}`}\t${serial}\tunknown\t/CN=x\n`,
  );
  write('index.txt', lines.join(''));
  write('number', '05\n');
  // The certificate that names the key: openssl compares the two.
  const [, named = anchor] = chainDers('lists', [leafKey, signer]);
  write('ca.pem', pem(signer === issuer ? anchor : named));
  write('ca.key', signer.privateKey.export({ format: 'pem', type: 'pkcs8' }));
  const authority = `[ca]\ndefault_ca=own\n[own]\ndatabase=index.txt\ncrlnumber=number\ndefault_md=${digest}\n`;
  const names = `certificate=ca.pem\nprivate_key=ca.key\ncrl_extensions=list\n`;
  write('ca.cnf', `${authority}${names}[list]\n${extensions ?? ''}\n[point]\n${point}\n`);
  const times = ['-crl_lastupdate', stamp(fromMs), '-crl_nextupdate', stamp(toMs)];
  openssl('ca', '-config', 'ca.cnf', '-gencrl', ...times, '-out', 'list.pem');
  openssl('crl', '-in', 'list.pem', '-outform', 'DER', '-out', 'list.der');
}

/** The verdict of `openssl verify`. */
function verdictOfOpenssl(leaf: Buffer, anchor: Buffer): Case['verdict'] {
  writeFileSync(join(folder, 'leaf.pem'), pem(leaf));
  writeFileSync(join(folder, 'anchor.pem'), pem(anchor));
  const options = ['-crl_check', '-CRLfile', 'list.pem', '-attime', String(chainTimeMs / 1000)];
  const output = openssl('verify', '-no-CApath', '-CAfile', 'anchor.pem', ...options, 'leaf.pem');
  if (output.includes('certificate revoked')) return 'Revoked';
  return output.includes('leaf.pem: OK') ? 'Good' : 'Unavailable';
}

it.skipIf(!hasOpenssl).each(CASES)(
  'a list of OpenSSL is judged as OpenSSL 3 judges it: $name (skipped without openssl)',
  (listed) => {
    const [leaf, anchor] = certificatesOf(listed);
    writeList(listed, anchor);
    const list = readFileSync(join(folder, 'list.der'));
    const issuer = parseCertificate(anchor);
    const { result } = verifyRevocationList(list, { issuer, atMs: chainTimeMs });
    const ours = result === undefined ? 'Unavailable' : judgeRevocation(result, parseCertificate(leaf));
    const theirs = verdictOfOpenssl(leaf, anchor);
    for (const file of ['list.pem', 'list.der']) rmSync(join(folder, file));
    expect({ ours, theirs }).toEqual({
      ours: listed.verdict,
      theirs: listed.theirs ?? listed.verdict,
    });
  },
);
