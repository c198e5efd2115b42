import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import fc from 'fast-check';
import { flattenedDecrypt, GeneralEncrypt, generalDecrypt } from 'jose';
import { describe, expect, it } from 'vitest';
import { createRandom } from '#kit/testing/random.ts';
import { sha256Hex } from '../../crypto/hash.ts';
import { unwrapAgreedKey } from '../../crypto/key-wrap.ts';
import { canonicalBytes, canonicalJson } from '../../encoding/jcs.ts';
import {
  clearPayload,
  type DisclosureGroup,
  type Envelope,
  findClearPayload,
  findEnvelope,
  groupAad,
  groupsPayload,
} from './envelope.ts';
import { payloadBytes, planGroups, type WalletDisclosure } from './groups.ts';
import { openGroup, openGroups, type UnwrappedKey, type WrappedKey } from './open.ts';
import { type RecipientKey, sealGroups } from './seal.ts';

const action = {
  registerId: '0123456789abcdef0123456789abcdef',
  type: 'action',
  blueprintId: 'site-permit-approval',
  actionId: '0',
  instanceId: '0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6a7b',
  blueprintDefinitionTxId: 'a'.repeat(64),
} as const;

interface Holder {
  readonly address: string;
  readonly privateKey: KeyObject;
  readonly key: RecipientKey;
}

function holder(address: string, algorithm: 'X25519' | 'ED25519' | 'NISTP256' | 'RSA-4096'): Holder {
  const kid = `${address}#platform:payload-encryption`;
  const pair = pairOf(algorithm);
  const der = pair.publicKey.export({ format: 'der', type: 'spki' });
  const publicKey = algorithm.endsWith('25519') ? der.subarray(-32) : der;
  return { address, privateKey: pair.privateKey, key: { kid, algorithm, publicKey } };
}

function pairOf(algorithm: RecipientKey['algorithm']) {
  if (algorithm === 'NISTP256') return generateKeyPairSync('ec', { namedCurve: 'P-256' });
  if (algorithm === 'RSA-4096') return generateKeyPairSync('rsa', { modulusLength: 4096 });
  return algorithm === 'X25519' ? generateKeyPairSync('x25519') : generateKeyPairSync('ed25519');
}

const applicant = holder('w1applicant', 'X25519');
const office = holder('w1office', 'NISTP256');
const board = holder('w1board', 'RSA-4096');
const keys = new Map([applicant, office, board].map(({ address, key }) => [address, key]));
const everything = { siteReference: 'AB-1234', floorAreaM2: 620, contact: { email: 'a@example.org' } };
const disclosures: readonly WalletDisclosure[] = [
  { address: applicant.address, pointers: ['/*'], data: everything },
  { address: office.address, pointers: ['/*'], data: everything },
  { address: board.address, pointers: ['/siteReference'], data: { siteReference: 'AB-1234' } },
];
const groups = planGroups(disclosures);
const envelope = sealGroups(action, groups, { keys, random: randomBytes });

/** Unwraps as the wallet service does, by libraries of their own. */
async function unwrapAs({ privateKey, key }: Holder, wrapped: WrappedKey): Promise<UnwrappedKey> {
  try {
    if (key.algorithm === 'RSA-4096') {
      const imported = privateKey.toCryptoKey({ name: 'RSA-OAEP', hash: 'SHA-256' }, false, ['decrypt']);
      const raw = await crypto.subtle.decrypt('RSA-OAEP', imported, Buffer.from(wrapped.encryptedKey));
      return { contentKey: Buffer.from(raw) };
    }
    const { crv, x, y } = wrapped.epk ?? { crv: '', x: Buffer.of(), y: Buffer.of() };
    const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url');
    const jwk =
      crv === 'X25519' ? { kty: 'OKP', crv, x: text(x) } : { kty: 'EC', crv, x: text(x), y: text(y) };
    const publicKey = createPublicKey({ key: jwk, format: 'jwk' });
    return { contentKey: unwrapAgreedKey(privateKey, { ...wrapped, publicKey }) };
  } catch {
    return { refusal: 'DECRYPT_FAILED' };
  }
}

function opened(who: Holder, ...envelopes: readonly Envelope[]) {
  const steps = envelopes.map((each, index) => ({
    registerId: action.registerId,
    txId: String(index),
    envelope: each,
  }));
  return openGroups(steps, [who.key.kid, who.address], (wrapped) =>
    Promise.all(wrapped.map((each) => unwrapAs(who, each))),
  );
}

describe('the plan of groups', () => {
  it('has two groups for the three parties of the site permit', () => {
    expect(groups).toEqual([
      { recipients: ['w1applicant', 'w1office'], fields: ['/*'], data: everything },
      { recipients: ['w1board'], fields: ['/siteReference'], data: { siteReference: 'AB-1234' } },
    ]);
  });

  it('has every recipient exactly once, and equal data once', () => {
    const view = fc.record({
      address: fc.constantFrom('a', 'b', 'c', 'd'),
      pointers: fc.subarray(['/x', '/y', '/z/p', '/z/q']),
    });
    const value = { x: 1, y: [1], z: { p: 1, q: { r: 1 } } };
    const pick = (pointers: readonly string[]) => ({
      ...(pointers.includes('/x') && { x: 1 }),
      ...(pointers.includes('/y') && { y: [1] }),
      ...((pointers.includes('/z/p') || pointers.includes('/z/q')) && {
        z: { ...(pointers.includes('/z/p') && { p: 1 }), ...(pointers.includes('/z/q') && { q: value.z.q }) },
      }),
    });
    fc.assert(
      fc.property(fc.array(view, { maxLength: 8 }), (views) => {
        const planned = planGroups(views.map((each) => ({ ...each, data: pick(each.pointers) })));
        const addresses = planned.flatMap(({ recipients }) => recipients);
        expect([...addresses].sort()).toEqual([...new Set(views.map(({ address }) => address))].sort());
        expect(new Set(planned.map(({ data }) => canonicalJson(data))).size).toBe(planned.length);
        for (const { recipients, data, fields } of planned) {
          expect([...recipients]).toEqual([...recipients].sort());
          for (const address of recipients) {
            const all = views.filter((each) => each.address === address).flatMap(({ pointers }) => pointers);
            expect(data).toEqual(pick(all));
            expect(fields).toEqual([...new Set(all)].sort());
          }
        }
        expect(
          planGroups([...views].reverse().map((each) => ({ ...each, data: pick(each.pointers) }))),
        ).toEqual(planned);
      }),
    );
  });

  it('refuses more than 16 groups and 64 recipients', () => {
    const many = (count: number, data: (index: number) => object) =>
      Array.from({ length: count }, (_, index) => ({
        address: `w${index}`,
        pointers: [],
        data: { ...data(index) },
      }));
    expect(planGroups(many(16, (n) => ({ n })))).toHaveLength(16);
    expect(() => planGroups(many(17, (n) => ({ n })))).toThrow(
      expect.objectContaining({ code: 'TOO_MANY_GROUPS' }),
    );
    expect(planGroups(many(64, () => ({})))).toHaveLength(1);
    expect(() => planGroups(many(65, () => ({})))).toThrow(
      expect.objectContaining({ code: 'TOO_MANY_RECIPIENTS' }),
    );
  });
});

describe('sealed groups', () => {
  it('are the envelope that readers know, and say nothing about the data', () => {
    const bytes = payloadBytes(envelope, 100_000);
    expect(findEnvelope(bytes)).toEqual(envelope);
    const text = Buffer.from(bytes).toString();
    for (const secret of ['siteReference', 'AB-1234', ':620']) expect(text).not.toContain(secret);
    expect(envelope.groups.map(({ groupId }) => groupId.length)).toEqual([22, 22]);
    expect(() => payloadBytes(envelope, bytes.length - 1)).toThrow(
      expect.objectContaining({ kind: 'too_large', code: 'PAYLOAD_TOO_LARGE' }),
    );
  });

  it('are opened by each recipient, and by no other', async () => {
    const reads = async (who: Holder) =>
      (await opened(who, envelope)).map((each) => 'data' in each && each.data);
    expect(await reads(applicant)).toEqual([everything]);
    expect(await reads(office)).toEqual([everything]);
    expect(await reads(board)).toEqual([{ siteReference: 'AB-1234' }]);
    expect(await reads(holder('w1other', 'X25519'))).toEqual([]);
  });

  it('are opened by jose, which makes some that are opened here', async () => {
    for (const [index, who] of [
      [0, applicant],
      [0, office],
      [1, board],
    ] as const) {
      const { jwe, commitment } = envelope.groups[index] ?? { jwe: undefined, commitment: '' };
      const recipients = jwe?.recipients.filter(({ header }) => header.kid === who.key.kid) ?? [];
      const { plaintext } = await generalDecrypt({ ...jwe, recipients } as never, who.privateKey);
      expect(`sha256:${sha256Hex(plaintext)}`).toBe(commitment);
    }
    for (const who of [[applicant], [office], [board], [applicant, office, board]]) {
      const made = await madeByJose(who);
      for (const each of who)
        expect(await opened(each, made)).toEqual([{ txId: '0', groupId: 'g', data: { a: 1 } }]);
    }
  });

  it('repeat byte for byte with the same random bytes, and never otherwise', () => {
    const curves = planGroups(disclosures.slice(0, 2));
    const sealed = (seed: number) => {
      const random = createRandom(seed);
      return canonicalJson(sealGroups(action, curves, { keys, random: (size) => random.bytes(size) }));
    };
    expect(sealed(1)).toBe(sealed(1));
    expect(sealed(1)).not.toBe(sealed(2));
  });

  it('take an Ed25519 key as the X25519 key of its secret', async () => {
    const who = holder('w1ed', 'ED25519');
    const made = sealGroups(action, [{ recipients: ['w1ed'], fields: ['/*'], data: { a: 1 } }], {
      keys: new Map([['w1ed', who.key]]),
      random: randomBytes,
    });
    const seed = who.privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32);
    const { ed25519 } = await import('@noble/curves/ed25519.js');
    const der = Buffer.concat([
      Buffer.from('302e020100300506032b656e04220420', 'hex'),
      ed25519.utils.toMontgomerySecret(seed),
    ]);
    const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    expect(await opened({ ...who, privateKey }, made)).toMatchObject([{ data: { a: 1 } }]);
  });

  it.each([
    ['X25519', '00'.repeat(32)],
    ['X25519', `01${'00'.repeat(31)}`],
    ['X25519', 'ab'.repeat(31)],
    ['ED25519', `01${'00'.repeat(31)}`],
    ['ED25519', `ed${'ff'.repeat(30)}7f`],
    ['NISTP256', 'ab'.repeat(91)],
    ['RSA-4096', '30'],
  ] as const)('refuse a broken key of %s: %s', (algorithm, hex) => {
    const broken = new Map([['w1', { kid: 'w1', algorithm, publicKey: Buffer.from(hex, 'hex') }]]);
    const seal = () =>
      sealGroups(action, [{ recipients: ['w1'], fields: [], data: {} }], {
        keys: broken,
        random: randomBytes,
      });
    expect(seal).toThrow(expect.objectContaining({ code: 'INVALID_ENCRYPTION_KEY' }));
  });

  it('are not sealed for some of the recipients alone', () => {
    const some = new Map([[applicant.address, applicant.key]]);
    expect(() => sealGroups(action, groups, { keys: some, random: randomBytes })).toThrow(
      expect.objectContaining({
        code: 'RECIPIENT_KEY_UNRESOLVED',
        details: { wallets: ['w1office', 'w1board'] },
      }),
    );
  });
});

async function madeByJose(holders: readonly Holder[]): Promise<Envelope> {
  const plaintext = canonicalBytes({ salt: 'AA', fields: ['/a'], data: { a: 1 } });
  const jwe = new GeneralEncrypt(plaintext)
    .setProtectedHeader({ enc: 'A256GCM', typ: 'disclosure-group+jwe' })
    .setAdditionalAuthenticatedData(Buffer.from(groupAad(action.registerId, action, 'g'), 'base64url'));
  for (const { privateKey, key } of holders) {
    const alg = key.algorithm === 'RSA-4096' ? 'RSA-OAEP-256' : 'ECDH-ES+A256KW';
    jwe.addRecipient(createPublicKey(privateKey)).setUnprotectedHeader({ alg, kid: key.kid });
  }
  const group = { groupId: 'g', commitment: `sha256:${sha256Hex(plaintext)}`, jwe: await jwe.encrypt() };
  const { registerId: _, ...owner } = action;
  const made = findEnvelope(canonicalBytes(groupsPayload(owner, [group as DisclosureGroup])));
  if (made === undefined) throw new Error('no envelope');
  return made;
}

describe('opening', () => {
  it('fails one group and opens the others, in batches of at most 256 keys', async () => {
    const [group] = envelope.groups;
    if (group === undefined) throw new Error('no group');
    const broken = { ...envelope, groups: [{ ...group, jwe: { ...group.jwe, tag: 'A'.repeat(22) } }] };
    const header = { ...envelope, groups: [withHeader(group, { epk: { crv: 'X25519', x: 'A' } })] };
    const envelopes = [broken, header, ...Array.from({ length: 300 }, () => envelope)];
    const sizes: number[] = [];
    const given: Uint8Array[] = [];
    const steps = envelopes.map((each, index) => ({
      registerId: action.registerId,
      txId: `${index}`,
      envelope: each,
    }));
    const found = await openGroups(steps, [applicant.key.kid], async (wrapped) => {
      sizes.push(wrapped.length);
      const answers = await Promise.all(wrapped.map((each) => unwrapAs(applicant, each)));
      for (const answer of answers) if ('contentKey' in answer) given.push(answer.contentKey);
      return answers;
    });
    expect(found.slice(0, 3).map((each) => ('failure' in each ? each.failure : each.data))).toEqual([
      'DECRYPT_FAILED',
      'DECRYPT_FAILED',
      everything,
    ]);
    expect(found.filter((each) => 'data' in each)).toHaveLength(300);
    expect(sizes).toEqual([255, 46]);
    expect(given.every((key) => key.every((byte) => byte === 0))).toBe(true);
  });

  it('passes on that a delegate may not use the primary key, and survives an answer that is too short', async () => {
    const steps = [{ registerId: action.registerId, txId: 't', envelope }];
    const answered = async (answers: readonly UnwrappedKey[]) =>
      (await openGroups(steps, [applicant.key.kid], async () => answers)).map(
        (each) => 'failure' in each && each.failure,
      );
    expect(await answered([{ refusal: 'WALLET_ACCESS_DENIED' }])).toEqual(['WALLET_ACCESS_DENIED']);
    expect(await answered([{ refusal: 'ANYTHING' }])).toEqual(['DECRYPT_FAILED']);
    expect(await answered([])).toEqual(['DECRYPT_FAILED']);
    expect(await answered([{ contentKey: Buffer.alloc(31) }])).toEqual(['DECRYPT_FAILED']);
  });

  it('refuses a byte that was changed anywhere in a group, and a group of another action', async () => {
    const mine = sealGroups(action, planGroups(disclosures.slice(0, 1)), { keys, random: randomBytes });
    const { actionId, instanceId, groups: sealed, ...rest } = mine;
    const text = canonicalJson({ actionId, groups: sealed, instanceId });
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"{}[]:,#.+= ';
    const known = new Map<string, UnwrappedKey>();
    for (let at = 0; at < text.length; at += 4) {
      const other = alphabet[(alphabet.indexOf(text.charAt(at)) + 1 + (at % 7)) % alphabet.length] ?? ' ';
      const changed = parse(`${text.slice(0, at)}${other}${text.slice(at + 1)}`);
      const whole = changed === undefined ? undefined : findEnvelope(canonicalBytes({ ...rest, ...changed }));
      const found = whole === undefined ? [] : await openedOnce(whole, known);
      expect([at, found.some((each) => 'data' in each)]).toEqual([at, false]);
    }
    const [group] = mine.groups;
    if (group === undefined) throw new Error('no group');
    const elsewhere = { registerId: 'f'.repeat(32), envelope: mine };
    expect(openGroup(elsewhere, { group, contentKey: Buffer.alloc(32) })).toBeUndefined();
    expect(await flattenedOf(group)).toMatchObject({ data: everything });
  });
});

/** Opens as the applicant, and unwraps the same key once. */
function openedOnce(whole: Envelope, known: Map<string, UnwrappedKey>) {
  const step = { registerId: action.registerId, txId: '0', envelope: whole };
  return openGroups([step], [applicant.key.kid], (wrapped) =>
    Promise.all(
      wrapped.map(async (each) => {
        const name = JSON.stringify(each);
        const answer = known.get(name) ?? (await unwrapAs(applicant, each));
        known.set(name, answer);
        // The caller wipes it.
        return 'contentKey' in answer ? { contentKey: Buffer.from(answer.contentKey) } : answer;
      }),
    ),
  );
}

async function flattenedOf({ jwe }: DisclosureGroup): Promise<unknown> {
  const { recipients, ...content } = jwe;
  const { plaintext } = await flattenedDecrypt(
    { ...content, ...recipients[0] } as never,
    applicant.privateKey,
  );
  return JSON.parse(Buffer.from(plaintext).toString()) as unknown;
}

function withHeader(group: DisclosureGroup, members: object): DisclosureGroup {
  const [first, ...rest] = group.jwe.recipients;
  if (first === undefined) throw new Error('no recipient');
  const changed = { ...first, header: { ...first.header, ...members } };
  return { ...group, jwe: { ...group.jwe, recipients: [changed, ...rest] } };
}

function parse(text: string): object | undefined {
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}

it('a payload in clear is found in its own form alone', () => {
  const { registerId: _, ...owner } = action;
  const clear = clearPayload({ ...owner, type: 'rejection' }, { reason: 'x' });
  expect(findClearPayload(payloadBytes(clear, 1000))).toEqual(clear);
  expect(findClearPayload(payloadBytes(envelope, 100_000))).toBeUndefined();
  expect(findEnvelope(payloadBytes(clear, 1000))).toBeUndefined();
  expect(findClearPayload(canonicalBytes({ ...clear, data: [] }))).toBeUndefined();
});
