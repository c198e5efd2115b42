import { describe, expect, it } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { submissionText } from '../../clients/submission.ts';
import { payloadTextOf } from './submit.ts';

const textOf = (text: string) => payloadTextOf(encodeBase64(Buffer.from(text)));

describe('payloadTextOf', () => {
  it('accepts JSON as written, and canonical JSON', () => {
    expect(textOf('{"b": 1, "a": [true]}')).toEqual({
      text: '{"b": 1, "a": [true]}',
      canonical: '{"a":[true],"b":1}',
    });
    expect(textOf('"text"').canonical).toBe('"text"');
  });

  it('wraps bytes that are not unambiguous JSON', () => {
    const deep = '['.repeat(65) + ']'.repeat(65);
    for (const text of ['', 'plain', '{"a":1,"a":2}', '{"a":1}x', deep, '\u00ff\u0000']) {
      const data = encodeBase64(Buffer.from(text));
      const wrapped = canonicalJson({ contentType: 'application/octet-stream', data });
      expect(payloadTextOf(data)).toEqual({ text: wrapped, canonical: wrapped });
    }
  });

  it('refuses text that is not base64 or larger than a transaction', () => {
    expect(() => payloadTextOf('a')).toThrow(expect.objectContaining({ kind: 'invalid' }));
    const large = encodeBase64(new Uint8Array(524_289));
    expect(() => payloadTextOf(large)).toThrow(expect.objectContaining({ code: 'TRANSACTION_TOO_LARGE' }));
  });
});

describe('submissionText', () => {
  it('has the member names of the specification and the payload as it was hashed', () => {
    const text = submissionText({
      txId: 'a'.repeat(64),
      envelope: {
        registerId: 'b'.repeat(32),
        type: 'Action',
        payloadHash: 'c'.repeat(64),
        createdAt: '2026-11-21T10:00:00.0000000+00:00',
      },
      signatures: [{ publicKey: 'AA==', signatureValue: 'AA==', algorithm: 'ED25519' }],
      payloadText: '{"n":1.0}',
    });
    expect(text).toContain('"Payload":{"n":1.0}');
    expect(JSON.parse(text)).toEqual({
      TransactionId: 'a'.repeat(64),
      RegisterId: 'b'.repeat(32),
      PayloadHash: 'c'.repeat(64),
      Signatures: [{ PublicKey: 'AA==', SignatureValue: 'AA==', Algorithm: 'ED25519' }],
      CreatedAt: '2026-11-21T10:00:00.0000000+00:00',
      Metadata: {},
      Payload: { n: 1 },
    });
  });
});
