import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { cborBytes, readCbor } from '../../encoding/cbor.ts';
import { embeddedCbor, writeCbor } from '../../encoding/cbor-writer.ts';
import { fuzzing, isWithin, mutatedBytes } from '../../encoding/testing/mutations.ts';
import { isAppError } from '../../errors/errors.ts';
import { chainTimeMs } from '../../trust/testing/chains.ts';
import type { PresentationCode } from '../presentation.ts';
import { signedBytes } from './cose.ts';
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
  signP1363,
} from './testing/documents.ts';
import { verifyMdoc } from './verify.ts';

vi.setConfig({ testTimeout: 1_200_000 });

const runs = fuzzing(process.env);

const signer = documentSigner();
const device = deviceKeys();
const issued = await issue(signer, contentOf(signer, device.jwk));
const parts = partsOf(issued);
const presented = presentParts(parts, device);

const codes: readonly PresentationCode[] = [
  'FORMAT',
  'VCT_MISMATCH',
  'SIGNATURE',
  'DIGEST',
  'EXPIRED',
  'KB_MISSING',
  'KB_SIGNATURE',
  'DEVICE_MAC_UNSUPPORTED',
];

/** The result; undefined when the text is refused, with one code of the table. */
function resultOf(text: string, isPresented = true) {
  const form = isPresented ? judgeMdocForm(text) : judgeIssuedMdocForm(text);
  const expected = {
    issuer: signer.issuer,
    docType,
    session: isPresented ? session : undefined,
    atMs: chainTimeMs,
  };
  const judged = form.result === undefined ? form : verifyMdoc(form.result, expected);
  if (judged.result === undefined) expect(codes).toContain(judged.violations[0].code);
  return judged.result;
}

const original = resultOf(presented);
const changed = (text: string) =>
  mutatedBytes(Buffer.from(text, 'base64url')).map((bytes) => bytes.toString('base64url'));

/** What nothing signs may change: the path of the certificates is judged by their own signatures. */
function isSound(text: string, isPresented: boolean): boolean {
  const result = resultOf(text, isPresented);
  if (result === undefined) return true;
  const { claims, ...others } = result;
  expect(others).toEqual({ ...original, claims: undefined });
  return isWithin(claims, original?.claims);
}

it('a changed mdoc is refused, or discloses less', () => {
  expect(JSON.stringify(original?.claims)).toContain('family_name');
  fc.assert(
    fc.property(changed(presented), (text) => isSound(text, true)),
    runs(1_500),
  );
  fc.assert(
    fc.property(changed(issued), (text) => isSound(text, false)),
    runs(1_500),
  );
});

it('whatever an issuer signs, nothing but a judgement comes of it', () => {
  const embedded = readCbor(parts.payload);
  if (embedded.kind !== 'tag' || embedded.inner.kind !== 'bytes') throw new Error('no security object');
  const objects = mutatedBytes(embedded.inner.value).map((encoded) => writeCbor(embeddedCbor({ encoded })));
  let accepted = 0;
  fc.assert(
    fc.property(objects, (payload) => {
      const signature = signP1363(signer.key.privateKey, signedBytes(parts.protectedHeader, payload));
      const result = resultOf(presentParts({ ...parts, payload, signature }, device));
      if (result === undefined) return true;
      accepted += 1;
      expect(result).toMatchObject({ docType, deviceKey: original?.deviceKey });
      // Every element has its digest in the object.
      return isWithin(result.claims, original?.claims) && result.validUntilMs > chainTimeMs - 60_000;
    }),
    runs(1_500),
  );
  expect(accepted).toBeGreaterThan(0);
});

it('CBOR is read as the bytes that it was, or refused', () => {
  fc.assert(
    fc.property(mutatedBytes(Buffer.from(presented, 'base64url')), (bytes) => {
      try {
        return Buffer.compare(cborBytes(readCbor(bytes)), bytes) === 0;
      } catch (error) {
        return isAppError(error, 'invalid') && error.code === 'CBOR_MALFORMED';
      }
    }),
    runs(1_500),
  );
});
