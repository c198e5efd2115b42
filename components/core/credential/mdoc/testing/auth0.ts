import { createPublicKey } from 'node:crypto';
import { DeviceResponse, Document, MDoc } from '@auth0/mdl';
import { embeddedCbor, writeCbor } from '../../../encoding/cbor-writer.ts';
import { dayMs } from '../../../trust/testing/chains.ts';
import { openId4VpTranscript } from '../verify.ts';
import { type DeviceKeys, type DocumentSigner, docType, nameSpace, session } from './documents.ts';

/** What the library of Auth0 issues with the key of a document signer and presents with that of a device, as CBOR. */
export async function presentByAuth0(
  signer: DocumentSigner,
  { device, atMs, elements }: Auth0Presentation,
): Promise<Buffer> {
  const spki = createPublicKey({ key: signer.key.spki, format: 'der', type: 'spki' });
  const { d = '' } = signer.key.privateKey.export({ format: 'jwk' });
  const issuerPrivateKey = { ...spki.export({ format: 'jwk' }), d, kid: 'signer' };
  const issuerCertificate = new Uint8Array(signer.certificate);
  const at = new Date(atMs);
  // The library writes dates into the elements that it is given.
  const issued = await new Document(docType)
    .addIssuerNameSpace(nameSpace, structuredClone(elements))
    .useDigestAlgorithm('SHA-256')
    .addValidityInfo({ signed: at, validFrom: at, validUntil: new Date(atMs + dayMs) })
    .addDeviceKeyInfo({ deviceKey: { ...device.jwk } })
    .sign({ issuerPrivateKey, issuerCertificate, alg: 'ES256' });
  const fields = Object.keys(elements).map((name) => ({
    path: [`$['${nameSpace}']['${name}']`],
    intent_to_retain: false,
  }));
  const transcript = writeCbor(embeddedCbor({ encoded: openId4VpTranscript(session) }));
  const presented = await DeviceResponse.from(new MDoc([issued]))
    .usingPresentationDefinition({
      id: 'request',
      input_descriptors: [
        {
          id: docType,
          format: { mso_mdoc: { alg: ['ES256'] } },
          constraints: { limit_disclosure: 'required', fields },
        },
      ],
    })
    .usingSessionTranscriptBytes(Buffer.from(transcript))
    .authenticateWithSignature({ ...device.privateJwk, kid: 'device' }, 'ES256')
    .sign();
  return presented.encode();
}

interface Auth0Presentation {
  readonly device: DeviceKeys;
  /** When it is signed, in milliseconds since the epoch; it holds for a day. */
  readonly atMs: number;
  /** All of them are disclosed. */
  readonly elements: Readonly<Record<string, unknown>>;
}
