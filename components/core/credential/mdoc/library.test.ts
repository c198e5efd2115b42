import { createPublicKey } from 'node:crypto';
import { Verifier } from '@auth0/mdl';
import {
  CoseKey,
  DeviceKey,
  DeviceRequest,
  DeviceResponse,
  DocRequest,
  Holder,
  IssuerSigned,
  IssuerSignedBuilder,
  ItemsRequest,
  SessionTranscript,
  SignatureAlgorithm,
} from '@owf/mdoc';
import { expect, it } from 'vitest';
import { sha256 } from '../../crypto/hash.ts';
import { embeddedCbor, writeCbor } from '../../encoding/cbor-writer.ts';
import { dayMs } from '../../trust/testing/chains.ts';
import { judgeMdocForm } from './parse.ts';
import { presentByAuth0 } from './testing/auth0.ts';
import {
  contentOf,
  deviceKeys,
  docType,
  documentSigner,
  elements,
  issue,
  nameSpace,
  session,
} from './testing/documents.ts';
import { libraryContext } from './testing/library.ts';
import { openId4VpTranscript, verifyMdoc } from './verify.ts';

// The other verifiers read the clock.
const nowMs = Math.floor(Date.now() / 1000) * 1000;
const signer = documentSigner(nowMs);
const device = deviceKeys();
const times = { signedMs: nowMs - dayMs, validFromMs: nowMs - dayMs, validUntilMs: nowMs + dayMs };
// The library of OWF hashes elements as it would write them, so it refuses a fraction in the shortest form of RFC 8949.
const { ratio: _, ...integers } = elements;
const content = { ...times, nameSpaces: { [nameSpace]: integers } };
const issued = await issue(signer, contentOf(signer, device.jwk, content));

const requested = ['family_name', 'birth_date', 'age_over_18', 'driving_privileges'];
const deviceRequest = DeviceRequest.create({
  docRequests: [
    DocRequest.create({
      itemsRequest: ItemsRequest.create({
        docType,
        namespaces: { [nameSpace]: Object.fromEntries(requested.map((name) => [name, true])) },
      }),
    }),
  ],
});

const keyOf = (jwk: Record<string, unknown>) => CoseKey.fromJwk({ ...jwk, alg: 'ES256' });

/** What the library of OWF presents of an issued mdoc. */
async function present(issuerSigned: IssuerSigned): Promise<string> {
  const { clientId, nonce, responseUri } = session;
  const sessionTranscript = await SessionTranscript.forOid4Vp(
    { clientId, nonce, responseUri },
    libraryContext,
  );
  const options = { deviceRequest, sessionTranscript, issuerSigned: [issuerSigned] };
  const signature = { signingKey: keyOf(device.privateJwk) };
  const response = await DeviceResponse.createWithDeviceRequest({ ...options, signature }, libraryContext);
  return response.encodedForOid4Vp;
}

function claimsOf(text: string): unknown {
  const form = judgeMdocForm(text);
  if (form.result === undefined) return form.violations;
  const { violations, result } = verifyMdoc(form.result, {
    issuer: signer.issuer,
    docType,
    session,
    atMs: nowMs,
  });
  return result?.claims[nameSpace] ?? violations;
}

const disclosed = Object.fromEntries(requested.map((name) => [name, elements[name]]));

it('the transcript is that of the library', async () => {
  const { clientId, nonce, responseUri } = session;
  for (const encryptionKeyThumbprint of [undefined, sha256('key')]) {
    const options = {
      clientId,
      nonce,
      responseUri,
      ...(encryptionKeyThumbprint && { jwkThumbprint: encryptionKeyThumbprint }),
    };
    const theirs = await SessionTranscript.forOid4Vp(options, libraryContext);
    expect(Buffer.from(theirs.encode())).toEqual(
      Buffer.from(openId4VpTranscript({ ...session, encryptionKeyThumbprint })),
    );
  }
});

it('the library of OWF accepts what we issue, and we accept what it presents', async () => {
  const failed: string[] = [];
  const verificationCallback = ({ status, check }: { readonly status: string; readonly check: string }) => {
    if (status === 'FAILED') failed.push(check);
  };
  const options = { issuerSigned: issued, verificationCallback, disableCertificateChainValidation: true };
  await Holder.verifyIssuerSigned(options, libraryContext);
  expect(failed).toEqual([]);
  expect(claimsOf(await present(IssuerSigned.fromEncodedForOid4Vci(issued)))).toEqual(disclosed);
});

it('the verifier of Auth0 accepts what we issue', async () => {
  const response = await present(IssuerSigned.fromEncodedForOid4Vci(issued));
  const failed: string[] = [];
  const verify = (encodedSessionTranscript: Uint8Array) =>
    new Verifier([]).verify(Buffer.from(response, 'base64url'), {
      encodedSessionTranscript,
      disableCertificateChainValidation: true,
      onCheck: ({ status, check }) => {
        if (status === 'FAILED') failed.push(check);
      },
    });
  const transcript = { encoded: openId4VpTranscript(session) };
  const mdoc = await verify(writeCbor(embeddedCbor(transcript)));
  expect(failed).toEqual([]);
  const [document] = mdoc.documents;
  expect(document?.getIssuerNameSpace(nameSpace)['family_name']).toBe('Müller');
  const other = { encoded: openId4VpTranscript({ ...session, nonce: 'another' }) };
  await verify(writeCbor(embeddedCbor(other)));
  expect(failed).toEqual(['Device signature must be valid']);
});

it('we accept what the library of OWF issues', async () => {
  const { x, y } = createPublicKey({ key: signer.key.spki, format: 'der', type: 'spki' }).export({
    format: 'jwk',
  });
  const { d } = signer.key.privateKey.export({ format: 'jwk' });
  const signed = await new IssuerSignedBuilder(docType, libraryContext)
    .addIssuerNamespace(nameSpace, {
      family_name: 'Müller',
      birth_date: '1990-02-28',
      age_over_18: true,
      driving_privileges: [],
    })
    .sign({
      signingKey: keyOf({ kty: 'EC', crv: 'P-256', x, y, d }),
      algorithm: SignatureAlgorithm.ES256,
      digestAlgorithm: 'SHA-512',
      validityInfo: {
        signed: new Date(nowMs),
        validFrom: new Date(nowMs),
        validUntil: new Date(nowMs + dayMs),
      },
      deviceKeyInfo: { deviceKey: DeviceKey.fromJwk({ ...device.jwk }) },
      certificates: [new Uint8Array(signer.certificate)],
    });
  expect(claimsOf(await present(signed))).toEqual({
    family_name: 'Müller',
    birth_date: '1990-02-28',
    age_over_18: true,
    driving_privileges: [],
  });
});

it('we accept what the library of Auth0 issues and presents', async () => {
  const given = {
    family_name: 'Müller',
    age_over_18: true,
    height: 181,
    driving_privileges: [{ code: 'B' }],
  };
  const presented = await presentByAuth0(signer, { device, atMs: nowMs, elements: given });
  expect(claimsOf(presented.toString('base64url'))).toEqual(given);
});
