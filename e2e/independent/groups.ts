import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { disclosureFile } from '#core/blueprint/disclosure/testing/shown.ts';
import { type DisclosureGroup, findEnvelope } from '#core/blueprint/payload/envelope.ts';
import { planGroups } from '#core/blueprint/payload/groups.ts';
import { openGroups, type UnwrappedKey, type WrappedKey } from '#core/blueprint/payload/open.ts';
import { sealGroups } from '#core/blueprint/payload/seal.ts';
import { unwrapAgreedKey } from '#core/crypto/key-wrap.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { type Counts, script } from './programs.ts';

const action = {
  registerId: '0123456789abcdef0123456789abcdef',
  type: 'action',
  blueprintId: 'site-permit-approval',
  actionId: '0',
  instanceId: '0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6a7b',
  blueprintDefinitionTxId: 'a'.repeat(64),
} as const;

type Algorithm = 'X25519' | 'NISTP256' | 'RSA-4096';

function makeKey(algorithm: Algorithm): { readonly privateKey: KeyObject; readonly publicKey: Buffer } {
  const { privateKey } =
    algorithm === 'X25519'
      ? generateKeyPairSync('x25519')
      : algorithm === 'NISTP256'
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
        : generateKeyPairSync('rsa', { modulusLength: 4096 });
  const der = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return { privateKey, publicKey: algorithm === 'X25519' ? der.subarray(-32) : der };
}

async function unwrap(privateKey: KeyObject, wrapped: WrappedKey): Promise<UnwrappedKey> {
  const { alg, epk, encryptedKey } = wrapped;
  if (alg === 'RSA-OAEP-256') {
    const key = privateKey.toCryptoKey({ name: 'RSA-OAEP', hash: 'SHA-256' }, false, ['decrypt']);
    const raw = await crypto.subtle.decrypt('RSA-OAEP', key, Buffer.from(encryptedKey));
    return { contentKey: Buffer.from(raw) };
  }
  const text = (bytes: Uint8Array = new Uint8Array()) => Buffer.from(bytes).toString('base64url');
  const point = { crv: epk?.crv ?? '', x: text(epk?.x) };
  const jwk = epk?.crv === 'X25519' ? { kty: 'OKP', ...point } : { kty: 'EC', ...point, y: text(epk?.y) };
  const publicKey = createPublicKey({ key: jwk, format: 'jwk' });
  return { contentKey: unwrapAgreedKey(privateKey, { ...wrapped, publicKey }) };
}

const madeSchema = z.object({ made: z.array(z.custom<DisclosureGroup>()) });

/** Groups that jwcrypto opens and makes, for a key of each kind. */
async function groupsExchange(dir: string): Promise<Counts[]> {
  const kinds: Readonly<Record<string, Algorithm>> = { w1x: 'X25519', w1p: 'NISTP256', w1r: 'RSA-4096' };
  const holders = Object.entries(kinds).map(([kid, algorithm]) => ({
    kid,
    algorithm,
    ...makeKey(algorithm),
  }));
  const [whole, part] = [{ text: 'Grüße, 世界', n: 0.1, list: [null, { a: true }] }, { n: 0.1 }];
  const views = { w1x: whole, w1p: part, w1r: whole };
  const planned = planGroups(
    Object.entries(views).map(([address, data]) => ({ address, pointers: ['/n'], data })),
  );
  const keys = new Map(holders.map((each) => [each.kid, each]));
  const envelope = sealGroups(action, planned, { keys, random: randomBytes });
  const file = join(dir, 'groups.json');
  const privateKeys = Object.fromEntries(
    holders.map(({ kid, privateKey }) => [kid, privateKey.export({ format: 'jwk' })]),
  );
  const exchange = { registerId: action.registerId, envelope, keys: privateKeys, views };
  writeFileSync(file, JSON.stringify(exchange), { mode: 0o600 });
  const theirs = await script('groups_jose.py', [file]);
  if (theirs.failed > 0) return [theirs];
  const { made } = madeSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  const received = findEnvelope(canonicalBytes({ ...envelope, groups: made }));
  if (received === undefined) return [theirs, { passed: 0, failed: 1 }];
  const step = { registerId: action.registerId, txId: '0'.repeat(64), envelope: received };
  const opened = await Promise.all(
    holders.map(({ kid, privateKey }) =>
      openGroups([step], [kid], (wrapped) => Promise.all(wrapped.map((each) => unwrap(privateKey, each)))),
    ),
  );
  const right = opened.flat().filter((each) => 'data' in each && each.data['made'] === 'by jwcrypto').length;
  const expected = 2 * holders.length;
  process.stdout.write(
    `${right === expected ? 'ok ' : 'NOT'} ${right} of ${expected} groups of jwcrypto open\n`,
  );
  return [theirs, right === expected ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 }];
}

/** A disclosure file, verified by a program that shares no code with the product; `flips` of its bytes are changed. */
async function disclosure(dir: string, flips: number): Promise<Counts> {
  const file = join(dir, 'disclosure.json');
  writeFileSync(file, disclosureFile());
  return script('disclosure_verify.py', [file, '--flips', String(flips)]);
}

/** What recipients of an action read and show to others. */
export async function disclosures(dir: string, flips: number): Promise<Counts[]> {
  return [...(await groupsExchange(dir)), await disclosure(dir, flips)];
}
