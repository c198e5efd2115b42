import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sha256Hex } from '../crypto/hash.ts';
import { createSigner } from '../crypto/sign.ts';
import { createVerifier, nodeEd25519 } from '../crypto/verify.ts';
import { encodeBase64 } from '../encoding/base64.ts';
import { canonicalBytes, canonicalJson } from '../encoding/jcs.ts';
import { scanJson } from '../encoding/json.ts';
import { utf8 } from '../encoding/text.ts';
import { findMemberAddress, findTransactionDid, memberDid, organisationDid, transactionDid } from './did.ts';
import { buildRecord, parseRecord, recordBytes, type SealedRecord } from './record.ts';
import {
  findDocketHash,
  findRegisterId,
  findTxId,
  parseRegisterId,
  parseTxId,
  registerIdOfUuid,
} from './register-id.ts';
import {
  boundTxId,
  isTransactionType,
  matchPayload,
  payloadHash,
  signingDigest,
  type TransactionEnvelope,
  verifyTransactionSignature,
} from './transaction.ts';

const address = 'w1ql5gs6vqa9urhmc2pfw8enazpk9qrl2eq0vs9977jcpj7fm5w0hpqx3zqnu';
const envelope: TransactionEnvelope = {
  registerId: '0123456789abcdef0123456789abcdef',
  blueprintId: 'loan',
  actionId: '0',
  type: 'Action',
  payloadHash: 'a'.repeat(64),
  createdAt: '2026-11-21T10:00:00.0000000+00:00',
};
const record: SealedRecord = buildRecord({
  envelope,
  txId: 'b'.repeat(64),
  payloadSize: 2,
  senderAddress: address,
  signatures: [{ publicKey: 'AA==', signatureValue: 'AA==', algorithm: 'ED25519' }],
  bound: false,
});

describe('bound transaction id', () => {
  const id = boundTxId(envelope, ['k']);

  it('is the same with absent and empty members, and for every type', () => {
    for (const same of [
      { metadata: {} },
      { recipients: [] },
      { expiresAt: undefined },
      { type: 'Control' as const },
    ]) {
      expect(boundTxId({ ...envelope, ...same }, ['k'])).toBe(id);
    }
  });

  it('changes with everything that it covers', () => {
    const changes: Partial<TransactionEnvelope>[] = [
      { registerId: 'f'.repeat(32) },
      { blueprintId: 'loan2' },
      { blueprintId: undefined },
      { actionId: '1' },
      { payloadHash: 'c'.repeat(64) },
      { previousTransactionId: 'd'.repeat(64) },
      { createdAt: '2026-11-21T10:00:00Z' },
      { expiresAt: '2026-11-22T10:00:00Z' },
      { recipients: [address] },
      { metadata: { a: '' } },
    ];
    const ids = changes.map((change) => boundTxId({ ...envelope, ...change }, ['k']));
    const others = [boundTxId(envelope, ['l']), boundTxId(envelope, ['k', 'l']), boundTxId(envelope, [])];
    expect(new Set([id, ...ids, ...others]).size).toBe(changes.length + 4);
  });
});

describe('payload', () => {
  it('is matched in its canonical form and in the form it was sent in', () => {
    const sent = '{ "b" : 1.0, "a":"\\u00e9" }';
    const compact = '{"b":1.0,"a":"\\u00e9"}';
    const match = matchPayload(scanJson(sent), sha256Hex(compact));
    expect(match?.form).toBe('compact');
    expect(Buffer.from(match?.bytes ?? []).toString()).toBe(compact);
    const canonical = matchPayload(scanJson(sent), payloadHash({ a: 'é', b: 1 }));
    expect(canonical?.form).toBe('jcs');
    expect(Buffer.from(canonical?.bytes ?? []).toString()).toBe('{"a":"é","b":1}');
    expect(matchPayload(scanJson(sent), sha256Hex(sent))).toBeUndefined();
  });

  it('any JSON is matched by its own hash', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const text = JSON.stringify(value, null, 1);
        const found = matchPayload(scanJson(text), payloadHash(JSON.parse(text)));
        expect(found?.form).toBe('jcs');
        expect(sha256Hex(found?.bytes ?? '')).toBe(payloadHash(value));
      }),
    );
  });
});

describe('transaction signature', () => {
  const verifier = createVerifier(nodeEd25519());

  it.each(['ED25519', 'NISTP256'] as const)('by %s over the digest', (algorithm) => {
    const signer = createSigner({ algorithm, privateKey: new Uint8Array(32).fill(3) });
    const transaction = { txId: 'b'.repeat(64), payloadHash: 'a'.repeat(64) };
    const signed = {
      algorithm,
      publicKey: encodeBase64(signer.publicKey),
      signatureValue: encodeBase64(
        signer.signDigest(signingDigest(transaction.txId, transaction.payloadHash)),
      ),
    };
    expect(verifyTransactionSignature(verifier, transaction, signed)).toBe(true);
    const other = { ...transaction, payloadHash: 'b'.repeat(64) };
    expect(verifyTransactionSignature(verifier, other, signed)).toBe(false);
    expect(verifyTransactionSignature(verifier, transaction, { ...signed, publicKey: '' })).toBe(false);
    expect(verifyTransactionSignature(verifier, transaction, { ...signed, signatureValue: '*' })).toBe(false);
  });
});

describe('record', () => {
  it('parses from its bytes', () => {
    expect(canonicalJson(parseRecord(recordBytes(record)))).toBe(canonicalJson(record));
  });

  const changed = (change: object): Uint8Array => canonicalBytes({ ...record, ...change });
  it.each([
    ['no JSON', utf8('{')],
    ['bytes that are no text', Uint8Array.of(0xff)],
    ['a list', utf8('[]')],
    ['white space', utf8(` ${canonicalJson(record)}`)],
    ['another order', utf8(JSON.stringify(record))],
    ['a member twice', utf8(canonicalJson(record).replace('"bound":false', '"bound":false,"bound":false'))],
    ['an escaped character', utf8(canonicalJson(record).replace('loan', 'lo\\u0061n'))],
    ['an unknown member', changed({ extra: 1 })],
    ['null', changed({ expiresAt: null })],
    ['no metadata', changed({ metadata: undefined })],
    ['no signatures', changed({ signatures: [] })],
    ['an unknown algorithm', changed({ signatures: [{ ...record.signatures[0], algorithm: 'Ed25519' }] })],
    ['a signature with more', changed({ signatures: [{ ...record.signatures[0], extra: '' }] })],
    ['an upper-case id', changed({ txId: 'B'.repeat(64) })],
    ['a negative size', changed({ payloadSize: -1 })],
    ['an unknown type', changed({ type: 'Docket' })],
    ['metadata that is no text', changed({ metadata: { a: 1 } })],
    ['a text for a truth value', changed({ bound: 'true' })],
  ])('refuses %s', (_name, bytes) => {
    expect(() => parseRecord(bytes)).toThrow(expect.objectContaining({ code: 'VAL_STRUCT_012' }));
  });
});

describe('identifiers', () => {
  const uuid = '01234567-89AB-cdef-0123-456789abcdef';

  it('are lower-cased and have their exact length', () => {
    expect(registerIdOfUuid(uuid)).toBe(envelope.registerId);
    expect(findTxId('B'.repeat(64))).toBe('b'.repeat(64));
    expect(findDocketHash('B'.repeat(64))).toBe('b'.repeat(64));
    for (const text of ['', 'g'.repeat(32), 'a'.repeat(31), `${'a'.repeat(32)}\n`]) {
      expect(findRegisterId(text)).toBeUndefined();
      expect(() => parseRegisterId(text)).toThrow(expect.objectContaining({ code: 'VAL_STRUCT_003' }));
      expect(() => parseTxId(text)).toThrow(expect.objectContaining({ code: 'VAL_STRUCT_002' }));
    }
  });

  it('types match exactly', () => {
    expect(isTransactionType('Action')).toBe(true);
    expect(isTransactionType('action')).toBe(false);
  });

  it('DIDs parse back; foreign ones do not', () => {
    expect(findMemberAddress(memberDid(address))).toBe(address);
    for (const did of [organisationDid(address), 'did:platform:w:w1abc', `did:other:w:${address}`, '']) {
      expect(findMemberAddress(did)).toBeUndefined();
    }
    const did = transactionDid(envelope.registerId, record.txId);
    expect(did).toBe(`did:platform:register:${envelope.registerId}/tx:${record.txId}`);
    expect(findTransactionDid(did)).toEqual({ registerId: envelope.registerId, txId: record.txId });
    expect(
      findTransactionDid(`did:platform:register:${envelope.registerId}/tx/${record.txId}`),
    ).toBeUndefined();
  });
});
