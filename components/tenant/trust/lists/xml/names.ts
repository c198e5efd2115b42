/** Namespaces and algorithms of signed trust lists (XML Signature 1.1; RFC 6931; ETSI EN 319 132-1). */
export const LIST_NS = 'http://uri.etsi.org/02231/v2#';
export const DS_NS = 'http://www.w3.org/2000/09/xmldsig#';
export const XADES_NS = 'http://uri.etsi.org/01903/v1.3.2#';
export const XML_NS = 'http://www.w3.org/XML/1998/namespace';
export const XMLNS_NS = 'http://www.w3.org/2000/xmlns/';

export const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature';
export const SIGNED_PROPERTIES = 'http://uri.etsi.org/01903#SignedProperties';

/** Exclusive, and inclusive as some lists have it; both without comments. */
export const CANONICALIZATIONS: readonly string[] = [
  'http://www.w3.org/2001/10/xml-exc-c14n#',
  'http://www.w3.org/TR/2001/REC-xml-c14n-20010315',
];

/** Digests by URI, with their names in OpenSSL. */
export const DIGESTS: ReadonlyMap<string, string> = new Map([
  ['http://www.w3.org/2001/04/xmlenc#sha256', 'sha256'],
  ['http://www.w3.org/2001/04/xmldsig-more#sha384', 'sha384'],
  ['http://www.w3.org/2001/04/xmlenc#sha512', 'sha512'],
]);

/** Digests of a certificate in signed properties. */
export const CERTIFICATE_DIGESTS: ReadonlyMap<string, string> = new Map([
  ...DIGESTS,
  ['http://www.w3.org/2000/09/xmldsig#sha1', 'sha1'],
]);

interface SignatureAlgorithm {
  readonly keyType: 'rsa' | 'ec';
  /** Name and hash in the Web Cryptography API. */
  readonly name: 'RSASSA-PKCS1-v1_5' | 'RSA-PSS' | 'ECDSA';
  readonly hash: 'SHA-256' | 'SHA-384' | 'SHA-512';
}

const hashes = { sha256: 'SHA-256', sha384: 'SHA-384', sha512: 'SHA-512' } as const;

function algorithmsOf(): readonly (readonly [string, SignatureAlgorithm])[] {
  return Object.entries(hashes).flatMap(
    ([name, hash]) =>
      [
        [
          `http://www.w3.org/2001/04/xmldsig-more#rsa-${name}`,
          { keyType: 'rsa', name: 'RSASSA-PKCS1-v1_5', hash },
        ],
        [
          `http://www.w3.org/2007/05/xmldsig-more#${name}-rsa-MGF1`,
          { keyType: 'rsa', name: 'RSA-PSS', hash },
        ],
        [`http://www.w3.org/2001/04/xmldsig-more#ecdsa-${name}`, { keyType: 'ec', name: 'ECDSA', hash }],
      ] as const,
  );
}

export const SIGNATURES: ReadonlyMap<string, SignatureAlgorithm> = new Map(algorithmsOf());
