import { describe, expect, it } from 'vitest';
import { sha256Hex } from '../crypto/hash.ts';
import { createSigner } from '../crypto/sign.ts';
import { createVerifier, nodeEd25519 } from '../crypto/verify.ts';
import { encodeBase64 } from '../encoding/base64.ts';
import { encodeHex } from '../encoding/hex.ts';
import { utf8 } from '../encoding/text.ts';
import { voteBytes } from './attestation.ts';
import { checkDocketText, docketHash } from './docket.ts';
import { emptyRoot, leafHash, root } from './merkle.ts';
import { payloadHash, signingDigest, verifyTransactionSignature } from './transaction.ts';

// Figures computed by hand from the specification's formulas.
const registerId = '0123456789abcdef0123456789abcdef';
const validatorAddress = 'ws1qexamplevalidator';
const txIds = [
  '045ef594d81d2f2134d61151ed71260d8f79e657c7cb6ed1d893688532017409',
  '0ab25f3049004ce5969100672c92a2768481db2abf7e0267a3b0828a639d5f75',
  'eea1ad3fbf2142ede510d0220518d902a5ba9b502851530d7fc1454f5147206c',
] as const;
const docket0 = {
  registerId,
  docketNumber: 0,
  previousHash: '0'.repeat(64),
  timestamp: '2026-11-20T15:00:00.0000000+00:00',
  validatorAddress,
  transactionIds: [txIds[0]],
};
const docket1 = {
  registerId,
  docketNumber: 1,
  previousHash: '271b8d932d06f4a51a235a6767bcd887a006eb963115c514a20e051eb1e3f05c',
  timestamp: '2026-11-20T15:00:10.0000000+00:00',
  validatorAddress,
  transactionIds: [txIds[1], txIds[2]],
};

describe('formulas of the specification', () => {
  it('transaction ids', () => {
    expect(['tx-1', 'tx-2', 'tx-3'].map((text) => sha256Hex(text))).toEqual(txIds);
  });

  it('docket hashes', () => {
    expect(docketHash(docket0)).toBe(docket1.previousHash);
    expect(docketHash(docket1)).toBe('1243ce143c41a3058a3714086ab54f495b595ba4fcbb7b779a5ea50a535c0199');
  });

  it('two dockets with one joined text are refused by the alphabet', () => {
    const ambiguous = {
      ...docket1,
      validatorAddress: `${validatorAddress}|${txIds[1]}`,
      transactionIds: [txIds[2]],
    };
    const joined = [
      registerId,
      1,
      docket1.previousHash,
      docket1.timestamp,
      validatorAddress,
      txIds[1],
      txIds[2],
    ];
    expect(sha256Hex(joined.join('|'))).toBe(docketHash(docket1));
    expect(checkDocketText(ambiguous).map(({ field }) => field)).toEqual(['validatorAddress']);
    expect(() => docketHash(ambiguous)).toThrow(expect.objectContaining({ code: 'HASH_MISMATCH' }));
  });

  const signer = createSigner({ algorithm: 'ED25519', privateKey: new Uint8Array(32).fill(7) });

  it('vote', () => {
    expect(encodeHex(signer.publicKey)).toBe(
      'ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c',
    );
    const facts = {
      docketHash: docket1.previousHash,
      validatorAddress,
      approved: true,
      timestamp: '2026-11-20T15:00:01.0000000+00:00',
    };
    expect(encodeHex(signer.sign(voteBytes(facts)))).toBe(
      '6c18f76fc6d2ccdbfaa0c1cc006e6b3a9726fc1f1a75f3d81213ee32fc62bd261b24777a9475b67c3b8afa197c4a0c3eee222481217fb6e34a02c933bcf8af08',
    );
  });

  it('transaction signature', () => {
    const hash = payloadHash({ a: 1, b: 'x' });
    expect(hash).toBe('ecf9e98ec0641e23113ff3ce8bdc78d0ddd249886517fd4a7f68cc83d4e65667');
    const digest = signingDigest(txIds[0], hash);
    expect(encodeHex(digest)).toBe('b85b445a72885b1893c48338412432c8d5c6bee42b7f304467aa82b1d4d903e8');
    const signatureValue = encodeBase64(signer.signDigest(digest));
    expect(signatureValue).toBe(
      'YnthYwf9sMh/pfnIy6wiSx0UyeVkwQ74mrg2ltLoJCIeVBoZ3n5fEOebecdGYjhYZV5wAIVSYjmdwalTmVztBg==',
    );
    const signature = {
      publicKey: encodeBase64(signer.publicKey),
      signatureValue,
      algorithm: 'ED25519',
    } as const;
    const verifier = createVerifier(nodeEd25519());
    expect(verifyTransactionSignature(verifier, { txId: txIds[0], payloadHash: hash }, signature)).toBe(true);
  });

  it('trees, without the flaws of trees that duplicate the last leaf', () => {
    const [a, b, c] = txIds.map((id) => leafHash(utf8(id)));
    if (a === undefined || b === undefined || c === undefined) throw new Error('three leaves');
    expect(encodeHex(root([a, b, c]))).toBe(
      '0ce1ac03f6832fce842d2b3324476a13199768c9795651d255cae7de0dfd9151',
    );
    expect(encodeHex(emptyRoot())).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    expect(encodeHex(root([a, b, c]))).not.toBe(encodeHex(root([a, b, c, c])));
    expect(encodeHex(root([leafHash(root([a, b]))]))).not.toBe(encodeHex(root([a, b])));
  });
});
