import type { Element } from '@xmldom/xmldom';
import { badSignature, ListFault } from '../values/fault.ts';
import { childrenOf, elementsOf, getChild, textOf } from './dom.ts';
import {
  CANONICALIZATIONS,
  CERTIFICATE_DIGESTS,
  DIGESTS,
  DS_NS,
  ENVELOPED,
  SIGNATURES,
  SIGNED_PROPERTIES,
  XADES_NS,
} from './names.ts';

/** What a signature says of itself, after it was found to have the one allowed form. */
export interface SignatureForm {
  readonly element: Element;
  readonly algorithm: NonNullable<ReturnType<typeof SIGNATURES.get>>;
  /** Digest of the list: URI of its reference, hash by its name in OpenSSL, and the value in base64. */
  readonly listDigest: { readonly uri: string; readonly hash: string; readonly value: string };
  /** Certificates of KeyInfo, base64 without white space. */
  readonly certificates: readonly string[];
  /** Digest of the signer's certificate in the signed properties, if there is one. */
  readonly certificateDigest: { readonly hash: string; readonly value: string } | undefined;
}

/**
 * Finds the signature of a list and judges its form, before any of it is used: one signature, a child of the root, that
 * covers the whole document without itself and its own signed properties, by transforms that remove nothing else.
 *
 * @throws ListFault signature
 */
export function judgeSignature(root: Element): SignatureForm {
  try {
    return formOf(root);
  } catch (error) {
    // The form of the signature is part of the signature.
    throw error instanceof ListFault ? badSignature(error.message) : error;
  }
}

function formOf(root: Element): SignatureForm {
  const [element, ...others] = childrenOf(root, DS_NS, 'Signature');
  // A signature elsewhere is none of this list, and a second one would be removed by the enveloped transform.
  const all = root.getElementsByTagNameNS(DS_NS, 'Signature').length;
  if (element === undefined) throw badSignature('the list has no signature below its root');
  if (others.length > 0 || all !== 1) throw badSignature('the list has more than one signature');
  const info = getChild(element, DS_NS, 'SignedInfo');
  getChild(element, DS_NS, 'SignatureValue');
  const method = getChild(info, DS_NS, 'SignatureMethod');
  const algorithm = SIGNATURES.get(attribute(method, 'Algorithm'));
  if (algorithm === undefined || elementsOf(method).length > 0) {
    throw badSignature('the algorithm of the signature is not allowed');
  }
  assertCanonical(getChild(info, DS_NS, 'CanonicalizationMethod'));
  const properties = propertiesOf(element);
  const certificates = getChild(element, DS_NS, 'KeyInfo');
  return {
    element,
    algorithm,
    listDigest: judgeReferences(info, properties, attribute(root, 'Id')),
    certificates: childrenOf(certificates, DS_NS, 'X509Data')
      .flatMap((data) => childrenOf(data, DS_NS, 'X509Certificate'))
      .map(compact),
    certificateDigest: certificateDigestOf(properties),
  };
}

function attribute(element: Element, name: string): string {
  return element.getAttributeNS(null, name) ?? '';
}

const compact = (element: Element) => textOf(element).replaceAll(/[\t\n\r ]/g, '');

/** The signed properties of this signature: in its only object. */
function propertiesOf(signature: Element): Element {
  const object = getChild(signature, DS_NS, 'Object');
  const qualifying = getChild(object, XADES_NS, 'QualifyingProperties');
  const target = attribute(qualifying, 'Target');
  if (target !== `#${attribute(signature, 'Id')}` || target === '#') {
    throw badSignature('the qualifying properties are those of another signature');
  }
  return getChild(qualifying, XADES_NS, 'SignedProperties');
}

/**
 * The list is covered as the whole document, or as the root by its Id, which no other element has (ETSI TS 119 612,
 * clause 5.7.1).
 */
function judgeReferences(info: Element, properties: Element, rootId: string): SignatureForm['listDigest'] {
  const references = childrenOf(info, DS_NS, 'Reference');
  const ofList = references.filter((reference) => {
    const uri = reference.getAttributeNS(null, 'URI');
    return uri === '' || (rootId !== '' && uri === `#${rootId}`);
  });
  const id = attribute(properties, 'Id');
  const ofProperties = references.filter(
    (reference) =>
      id !== '' &&
      attribute(reference, 'URI') === `#${id}` &&
      attribute(reference, 'Type') === SIGNED_PROPERTIES,
  );
  const [list, signed] = [ofList[0], ofProperties[0]];
  if (references.length !== 2 || list === undefined || signed === undefined) {
    throw badSignature('the signature must cover the whole list and its signed properties, and nothing else');
  }
  const [first, second, ...rest] = transformsOf(list);
  if (
    first === undefined ||
    second === undefined ||
    rest.length > 0 ||
    attribute(first, 'Algorithm') !== ENVELOPED
  )
    throw badSignature('the list must be signed by the enveloped transform and a canonicalization');
  if (elementsOf(first).length > 0) throw badSignature('a transform has parameters');
  assertCanonical(second);
  const transforms = transformsOf(signed);
  if (transforms.length > 1) throw badSignature('the signed properties have more than a canonicalization');
  for (const transform of transforms) assertCanonical(transform);
  digestOf(signed);
  return { uri: attribute(list, 'URI'), ...digestOf(list) };
}

function transformsOf(reference: Element): readonly Element[] {
  return childrenOf(reference, DS_NS, 'Transforms').flatMap((transforms) => elementsOf(transforms));
}

/** Exclusive or inclusive canonicalization without comments and without parameters. */
function assertCanonical(element: Element): void {
  const isAllowed = CANONICALIZATIONS.includes(attribute(element, 'Algorithm'));
  if (!isAllowed || elementsOf(element).length > 0) throw badSignature('a transform is not allowed');
}

function digestOf(
  parent: Element,
  allowed: ReadonlyMap<string, string> = DIGESTS,
): { readonly hash: string; readonly value: string } {
  const hash = allowed.get(attribute(getChild(parent, DS_NS, 'DigestMethod'), 'Algorithm'));
  if (hash === undefined) throw badSignature('a digest is weaker than SHA-256, or unknown');
  return { hash, value: compact(getChild(parent, DS_NS, 'DigestValue')) };
}

/**
 * Of SigningCertificateV2 (ETSI EN 319 132-1, 5.2.2), or of the older SigningCertificate. Most lists of version 5 name the
 * certificate by SHA-1; the pin identifies it by SHA-256, so this digest only confirms it.
 */
function certificateDigestOf(properties: Element): SignatureForm['certificateDigest'] {
  const [reference, ...others] = childrenOf(properties, XADES_NS, 'SignedSignatureProperties')
    .flatMap((signed) => [
      ...childrenOf(signed, XADES_NS, 'SigningCertificateV2'),
      ...childrenOf(signed, XADES_NS, 'SigningCertificate'),
    ])
    .flatMap((list) => childrenOf(list, XADES_NS, 'Cert'));
  if (reference === undefined) return undefined;
  if (others.length > 0) throw badSignature('the signed properties name several certificates');
  return digestOf(getChild(reference, XADES_NS, 'CertDigest'), CERTIFICATE_DIGESTS);
}
