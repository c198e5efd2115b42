import {
  type DerNode,
  derBytes,
  derChildren,
  derContent,
  derInner,
  derSequence,
  readDer,
} from '../encoding/der.ts';
import type { Certificate } from './certificate.ts';
import { EXTENSION, findExtension } from './extensions.ts';

/** `[0]` of DistributionPoint, and of its DistributionPointName. */
const TAG_POINT = 0xa0;
const TAG_FULL_NAME = 0xa0;
/** GeneralName of a URI. */
const TAG_URI = 0x86;

const WEB_ADDRESS = /^https?:\/\/[\x21-\x7e]+$/i;

/**
 * The names of a DistributionPointName (RFC 5280 section 4.2.1.13), each a GeneralName in DER. Undefined where it is
 * written relative to the issuer's name, which is not supported.
 * @param node the explicit tag around it
 */
export function distributionNames(node: DerNode): readonly Uint8Array[] | undefined {
  const name = derInner(node);
  return name.tag === TAG_FULL_NAME ? derChildren(name).map(derBytes) : undefined;
}

function pointNames(point: DerNode): readonly Uint8Array[] {
  const [first, ...more] = derSequence(point);
  // What follows limits the reasons, or names another signer: such a list does not say all about the certificate.
  if (first?.tag !== TAG_POINT || more.length > 0) return [];
  return distributionNames(first) ?? [];
}

/**
 * The names of the lists of revoked certificates that a certificate is in (RFC 5280 section 4.2.1.13), each a GeneralName
 * in DER. Lists for some reasons alone and those that another authority signs are left out.
 * @throws AppError invalid DER_MALFORMED
 */
export function revocationListNames(certificate: Certificate): readonly Uint8Array[] {
  const node = findExtension(certificate, EXTENSION.crlDistributionPoints);
  return node === undefined ? [] : derSequence(node).flatMap(pointNames);
}

/**
 * The http and https addresses among them, in their order, each once.
 * @throws AppError invalid DER_MALFORMED
 */
export function revocationListAddresses(certificate: Certificate): readonly string[] {
  const texts = revocationListNames(certificate)
    .map((name) => readDer(name))
    .filter(({ tag }) => tag === TAG_URI)
    .map((name) => Buffer.from(derContent(name)).toString('latin1'));
  return [...new Set(texts)].filter((text) => WEB_ADDRESS.test(text));
}
