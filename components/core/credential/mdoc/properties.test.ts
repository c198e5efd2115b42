import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { chainTimeMs } from '../../trust/testing/chains.ts';
import { judgeIssuedMdocForm, judgeMdocForm } from './parse.ts';
import {
  contentOf,
  deviceKeys,
  docType,
  documentSigner,
  issue,
  partsOf,
  presentParts,
  session,
} from './testing/documents.ts';
import { type VerifiedMdoc, verifyMdoc } from './verify.ts';

// Thousands of judgements, on machines that do other work as well.
vi.setConfig({ testTimeout: 30_000 });

const signer = documentSigner();
const device = deviceKeys();
const whole = Buffer.from(
  presentParts(partsOf(await issue(signer, contentOf(signer, device.jwk))), device),
  'base64url',
);

/** The result for changed bytes; undefined when they are refused. */
function resultOf(bytes: Uint8Array): VerifiedMdoc | undefined {
  const form = judgeMdocForm(Buffer.from(bytes).toString('base64url'));
  if (form.result === undefined) return undefined;
  return verifyMdoc(form.result, { issuer: signer.issuer, docType, session, atMs: chainTimeMs }).result;
}

const original = JSON.stringify(resultOf(whole));
const withoutClaims = JSON.stringify({ ...resultOf(whole), claims: {} });

/**
 * Bytes may change that nothing signs: the certificates, whose path is judged by their own signatures, and the name of the
 * member that holds the disclosed elements, without which nothing is disclosed. What is accepted states nothing else.
 */
function isSound(bytes: Uint8Array): boolean {
  const result = resultOf(bytes);
  return result === undefined || [original, withoutClaims].includes(JSON.stringify(result));
}

it('one flipped bit changes nothing that is stated, wherever it is', () => {
  const from = whole.indexOf(signer.certificate);
  let accepted = 0;
  for (let bit = 0; bit < whole.length * 8; bit += 3) {
    const at = bit >> 3;
    if (at >= from && at < from + signer.certificate.length) continue;
    const changed = Buffer.from(whole);
    changed[at] = (changed[at] ?? 0) ^ (1 << (bit & 7));
    expect([bit, isSound(changed)]).toEqual([bit, true]);
    accepted += Number(resultOf(changed) !== undefined);
  }
  // the label of the certificates, and the name of the namespaces
  expect(accepted).toBeLessThan(60);
});

it('nothing but a judgement comes of any bytes', () => {
  expect(original).toContain('family_name');
  const cut = fc
    .tuple(fc.nat(whole.length), fc.uint8Array({ maxLength: 6 }), fc.nat(40))
    .map(([at, bytes, skip]) =>
      Buffer.concat([whole.subarray(0, at), bytes, whole.subarray(Math.min(whole.length, at + skip))]),
    );
  fc.assert(
    fc.property(fc.oneof(cut, fc.uint8Array({ maxLength: 64 })), (bytes) => {
      judgeIssuedMdocForm(Buffer.from(bytes).toString('base64url'));
      return isSound(bytes);
    }),
    { numRuns: 500 },
  );
});
