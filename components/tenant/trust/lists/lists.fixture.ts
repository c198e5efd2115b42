import { execFileSync } from 'node:child_process';
import { createHash, createPrivateKey, type KeyObject, randomBytes, sign, webcrypto } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import 'reflect-metadata';
import { BasicConstraintsExtension, X509CertificateGenerator } from '@peculiar/x509';

/** A certificate with its key, for one test. */
export interface TestCertificate {
  readonly der: Buffer;
  readonly base64: string;
  /** SHA-256, hex. */
  readonly sha256: string;
  readonly key: KeyObject;
  readonly keyPem: string;
}

interface CertificateWish {
  readonly name?: string;
  readonly algorithm?: 'P-256' | 'P-384' | 'P-521' | 'RSA-2048' | 'RSA-1024';
  readonly ca?: boolean;
  readonly notBefore?: string;
  readonly notAfter?: string;
}

const algorithms = {
  'P-256': { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  'P-384': { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  'P-521': { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-512' },
  'RSA-2048': rsaOf(2048),
  'RSA-1024': rsaOf(1024),
} as const;

function rsaOf(modulusLength: number) {
  const publicExponent = new Uint8Array([1, 0, 1]);
  return { name: 'RSASSA-PKCS1-v1_5', modulusLength, publicExponent, hash: 'SHA-256' };
}

/** A self-signed certificate. */
export async function makeCertificate(wish: CertificateWish = {}): Promise<TestCertificate> {
  const algorithm = algorithms[wish.algorithm ?? 'P-256'];
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, [
    'sign',
    'verify',
  ])) as webcrypto.CryptoKeyPair;
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: `01${randomBytes(8).toString('hex')}`,
      name: `CN=${wish.name ?? 'Test'}, O=Operator, C=DE`,
      notBefore: new Date(wish.notBefore ?? '2020-01-01T00:00:00Z'),
      notAfter: new Date(wish.notAfter ?? '2060-01-01T00:00:00Z'),
      keys,
      signingAlgorithm: algorithm,
      extensions: [new BasicConstraintsExtension(wish.ca ?? true, undefined, true)],
    },
    webcrypto as Crypto,
  );
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  const der = Buffer.from(certificate.rawData);
  return {
    der,
    base64: der.toString('base64'),
    sha256: createHash('sha256').update(der).digest('hex'),
    key,
    keyPem: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

export const GRANTED = 'http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted';
export const WITHDRAWN = 'http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn';
export const CA_QC = 'http://uri.etsi.org/TrstSvc/Svctype/CA/QC';

interface TestService {
  readonly type?: string;
  readonly status?: string;
  /** Its status until the present one. */
  readonly previous?: string;
  /** XML of an extension of it. */
  readonly extension?: string;
  readonly certificates: readonly string[];
}

export interface TestList {
  readonly version?: number | string;
  readonly sequence?: number | string;
  readonly territory?: string;
  readonly operator?: string;
  readonly issued?: string;
  /** Null: no next update. */
  readonly nextUpdate?: string | null;
  readonly services?: readonly TestService[];
  /** XML that stands before the services of the provider. */
  readonly extra?: string;
}

const page = '<URI xml:lang="en">https://operator.example/</URI>';
const address =
  '<PostalAddresses><PostalAddress xml:lang="en"><StreetAddress>Main Street 1</StreetAddress><Locality>Berlin</Locality>' +
  `<CountryName>DE</CountryName></PostalAddress></PostalAddresses><ElectronicAddress>${page}</ElectronicAddress>`;
const nameOf = (text: string) => `<Name xml:lang="en">${text}</Name>`;

/** The children of the root of a list, in canonical form; the schema of ETSI TS 119 612 allows them. */
export function listBody(list: TestList): string {
  const { version = 6, sequence = 1, territory = 'DE', operator = 'Test Operator' } = list;
  const { issued = '2026-01-01T00:00:00Z', nextUpdate = '2050-01-01T00:00:00Z', services = [] } = list;
  const next = nextUpdate === null ? '' : `<dateTime>${nextUpdate}</dateTime>`;
  return (
    `<SchemeInformation><TSLVersionIdentifier>${version}</TSLVersionIdentifier>` +
    `<TSLSequenceNumber>${sequence}</TSLSequenceNumber>` +
    `<TSLType>http://uri.etsi.org/TrstSvc/TrustedList/TSLType/EUgeneric</TSLType>` +
    `<SchemeOperatorName><Name xml:lang="de">Betreiber</Name>${nameOf(operator)}</SchemeOperatorName>` +
    `<SchemeOperatorAddress>${address}</SchemeOperatorAddress><SchemeName>${nameOf('DE:A scheme')}</SchemeName>` +
    `<SchemeInformationURI>${page}</SchemeInformationURI><StatusDeterminationApproach>` +
    'http://uri.etsi.org/TrstSvc/TrustedList/StatusDetn/EUappropriate</StatusDeterminationApproach>' +
    `<SchemeTerritory>${territory}</SchemeTerritory>` +
    '<HistoricalInformationPeriod>65535</HistoricalInformationPeriod>' +
    `<ListIssueDateTime>${issued}</ListIssueDateTime><NextUpdate>${next}</NextUpdate></SchemeInformation>` +
    `<TrustServiceProviderList><TrustServiceProvider><TSPInformation><TSPName>${nameOf('A provider')}</TSPName>` +
    `<TSPAddress>${address}</TSPAddress><TSPInformationURI>${page}</TSPInformationURI></TSPInformation>` +
    `${list.extra ?? ''}<TSPServices>${services.map(serviceOf).join('')}</TSPServices></TrustServiceProvider>` +
    '</TrustServiceProviderList>'
  );
}

export function serviceOf({ type = CA_QC, status = GRANTED, certificates, ...more }: TestService): string {
  const identities = certificates.map(
    (text) => `<DigitalId><X509Certificate>${text}</X509Certificate></DigitalId>`,
  );
  const state = (present: string, since: string) =>
    `<ServiceTypeIdentifier>${type}</ServiceTypeIdentifier><ServiceName>${nameOf('A service')}</ServiceName>` +
    `<ServiceDigitalIdentity>${identities.join('')}</ServiceDigitalIdentity>` +
    `<ServiceStatus>${present}</ServiceStatus><StatusStartingTime>${since}</StatusStartingTime>`;
  const { previous, extension } = more;
  const extensions =
    extension === undefined
      ? ''
      : '<ServiceInformationExtensions><Extension Critical="false">' +
        `${extension}</Extension></ServiceInformationExtensions>`;
  const history =
    previous === undefined
      ? ''
      : `<ServiceHistory><ServiceHistoryInstance>${state(previous, '2021-01-01T00:00:00Z')}` +
        '</ServiceHistoryInstance></ServiceHistory>';
  return (
    `<TSPService><ServiceInformation>${state(status, '2025-01-01T00:00:00Z')}${extensions}</ServiceInformation>` +
    `${history}</TSPService>`
  );
}

const DS = 'http://www.w3.org/2000/09/xmldsig#';
const XADES = 'http://uri.etsi.org/01903/v1.3.2#';
export const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#';
export const INCLUSIVE = 'http://www.w3.org/TR/2001/REC-xml-c14n-20010315';
export const ENVELOPED = `${DS}enveloped-signature`;
const digestUris = {
  sha1: `${DS}sha1`,
  sha256: 'http://www.w3.org/2001/04/xmlenc#sha256',
  sha384: 'http://www.w3.org/2001/04/xmldsig-more#sha384',
  sha512: 'http://www.w3.org/2001/04/xmlenc#sha512',
} as const;

/** How a signature departs from the usual one; all of it is signed. */
export interface SignatureWish {
  readonly signer: TestCertificate;
  readonly hash?: keyof typeof digestUris;
  readonly pss?: boolean;
  /** Digest of the references. */
  readonly digest?: keyof typeof digestUris;
  readonly canonicalization?: string;
  /** The elements inside Transforms of the reference to the list. */
  readonly listTransforms?: string;
  readonly propertiesTransforms?: string;
  /** Attributes of the reference to the list. */
  readonly listReference?: string;
  readonly propertiesType?: string;
  /** Further references. */
  readonly more?: string;
  /** Certificates of KeyInfo, base64. */
  readonly carried?: readonly string[];
  /** Base64 of the certificate that the signed properties name; null: they name none. */
  readonly named?: string | null;
  /** Digest of that certificate. */
  readonly namedDigest?: keyof typeof digestUris;
  readonly target?: string;
}

const transform = (algorithm: string, inside = '') =>
  `<ds:Transform Algorithm="${algorithm}">${inside}</ds:Transform>`;
const digestOf = (hash: string, text: string | Uint8Array) => createHash(hash).update(text).digest('base64');

function digestElements(hash: keyof typeof digestUris, value: string, ns = ''): string {
  return (
    `<ds:DigestMethod${ns} Algorithm="${digestUris[hash]}"></ds:DigestMethod>` +
    `<ds:DigestValue${ns}>${value}</ds:DigestValue>`
  );
}

function signatureUri({ signer, hash = 'sha256', pss = false }: SignatureWish): string {
  if (pss) return `http://www.w3.org/2007/05/xmldsig-more#${hash}-rsa-MGF1`;
  if (hash === 'sha1') return `${DS}rsa-sha1`;
  const kind = signer.key.asymmetricKeyType === 'rsa' ? 'rsa' : 'ecdsa';
  return `http://www.w3.org/2001/04/xmldsig-more#${kind}-${hash}`;
}

function signText(text: string, { signer, hash = 'sha256', pss = false }: SignatureWish): string {
  const padding = pss ? { padding: 6, saltLength: -1 } : {};
  return sign(hash, Buffer.from(text), {
    key: signer.key,
    dsaEncoding: 'ieee-p1363',
    ...padding,
  }).toString('base64');
}

export const rootOpen =
  '<TrustServiceStatusList xmlns="http://uri.etsi.org/02231/v2#" Id="TL" TSLTag="http://uri.etsi.org/19612/TSLTag">';
export const rootClose = '</TrustServiceStatusList>';

/** A signed list without a library: each signed part is written in its canonical form (Exclusive XML Canonicalization). */
export function signList(list: TestList, wish: SignatureWish): string {
  const body = listBody(list);
  return `${rootOpen}${body}${signatureOf(`${rootOpen}${body}${rootClose}`, wish)}${rootClose}`;
}

/** The signature of a canonical text. */
export function signatureOf(signed: string, wish: SignatureWish): string {
  const { digest = 'sha256', canonicalization = EXCLUSIVE, signer, named = signer.base64 } = wish;
  const ns = ` xmlns:ds="${DS}"`;
  const properties =
    `<xades:SignedProperties xmlns:xades="${XADES}" Id="xades-sig">${signedProperties(named, ns, wish.namedDigest)}` +
    '</xades:SignedProperties>';
  const { propertiesType = 'http://uri.etsi.org/01903#SignedProperties', target = '#sig' } = wish;
  const info =
    `<ds:SignedInfo${ns}><ds:CanonicalizationMethod Algorithm="${canonicalization}"></ds:CanonicalizationMethod>` +
    `<ds:SignatureMethod Algorithm="${signatureUri(wish)}"></ds:SignatureMethod>` +
    `<ds:Reference ${wish.listReference ?? 'Id="list" URI=""'}><ds:Transforms>` +
    `${wish.listTransforms ?? transform(ENVELOPED) + transform(EXCLUSIVE)}</ds:Transforms>` +
    `${digestElements(digest, digestOf(digest, signed))}</ds:Reference>` +
    `<ds:Reference Type="${propertiesType}" URI="#xades-sig"><ds:Transforms>` +
    `${wish.propertiesTransforms ?? transform(EXCLUSIVE)}</ds:Transforms>` +
    `${digestElements(digest, digestOf(digest, properties))}</ds:Reference>${wish.more ?? ''}</ds:SignedInfo>`;
  const certificates = (wish.carried ?? [signer.base64]).map(
    (text) => `<ds:X509Data><ds:X509Certificate>${text}</ds:X509Certificate></ds:X509Data>`,
  );
  return (
    `<ds:Signature${ns} Id="sig">${info}<ds:SignatureValue>${signText(info, wish)}</ds:SignatureValue>` +
    `<ds:KeyInfo>${certificates.join('')}</ds:KeyInfo><ds:Object><xades:QualifyingProperties ` +
    `xmlns:xades="${XADES}" Target="${target}">${properties}</xades:QualifyingProperties>` +
    `</ds:Object></ds:Signature>`
  );
}

/** The content of the signed properties, in canonical form (ETSI EN 319 132-1, XAdES-B-B). */
function signedProperties(
  named: string | null,
  ns: string,
  hash: keyof typeof digestUris = 'sha256',
): string {
  const digest = digestOf(hash, Buffer.from(named ?? '', 'base64'));
  const certificate =
    named === null
      ? ''
      : '<xades:SigningCertificateV2><xades:Cert><xades:CertDigest>' +
        `${digestElements(hash, digest, ns)}</xades:CertDigest></xades:Cert></xades:SigningCertificateV2>`;
  return (
    `<xades:SignedSignatureProperties><xades:SigningTime>2026-01-01T00:00:00Z</xades:SigningTime>${certificate}` +
    '</xades:SignedSignatureProperties><xades:SignedDataObjectProperties>' +
    '<xades:DataObjectFormat ObjectReference="#list"><xades:MimeType>text/xml</xades:MimeType></xades:DataObjectFormat>' +
    '</xades:SignedDataObjectProperties>'
  );
}

/** A compact JWS of ES256 with its certificate; the header can be changed, and the payload be text that is no JSON. */
export function jwsOf(payload: unknown, signer: TestCertificate, header: object = {}): string {
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload);
  const input = [JSON.stringify({ alg: 'ES256', x5c: [signer.base64], ...header }), text]
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.');
  const signature = sign('sha256', Buffer.from(input), { key: signer.key, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

/** Why tests with xmlsec1 are skipped; undefined where it runs. */
export function xmlsecAbsence(): string | undefined {
  try {
    execFileSync('xmlsec1', ['--version'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'xmlsec1 is not installed';
  }
}

/** Signs a list with xmlsec1, from a template with white space, declarations, comments and a prefix of its own. */
export function signByXmlsec(list: TestList, signer: TestCertificate, canonicalization = EXCLUSIVE): string {
  const method =
    signer.key.asymmetricKeyType === 'rsa'
      ? 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512'
      : 'http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha384';
  const digest = `<ds:DigestMethod Algorithm="${digestUris.sha512}"/><ds:DigestValue/>`;
  const canonical = `<ds:Transform Algorithm="${canonicalization}"/>`;
  // without transforms the default canonicalization is the inclusive one
  const ofProperties = canonicalization === INCLUSIVE ? '' : `<ds:Transforms>${canonical}</ds:Transforms>`;
  const template = `<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<!-- outside -->
<TrustServiceStatusList TSLTag='http://uri.etsi.org/19612/TSLTag' xmlns:ns3="http://uri.etsi.org/02231/v2/additionaltypes#"
  Id="TL" xmlns="http://uri.etsi.org/02231/v2#"><!-- inside -->
${listBody(list).replaceAll('><', '>\n<')}
<ds:Signature Id="sig" xmlns:ds="${DS}"><ds:SignedInfo>
  <ds:CanonicalizationMethod Algorithm="${canonicalization}"/><ds:SignatureMethod Algorithm="${method}"/>
  <ds:Reference Id="list" URI=""><ds:Transforms><ds:Transform Algorithm="${ENVELOPED}"/>${canonical}</ds:Transforms>
  ${digest}</ds:Reference>
  <ds:Reference URI="#props" Type="http://uri.etsi.org/01903#SignedProperties">${ofProperties}
  ${digest}</ds:Reference></ds:SignedInfo><ds:SignatureValue/>
  <ds:KeyInfo><ds:X509Data><ds:X509Certificate>
${signer.base64.replaceAll(/(.{64})/g, '$1\n')}
  </ds:X509Certificate></ds:X509Data></ds:KeyInfo>
  <ds:Object><xades:QualifyingProperties Target="#sig" xmlns:xades="${XADES}">
  <xades:SignedProperties Id="props">${signedProperties(signer.base64, '').replaceAll('><', '>\n<')}</xades:SignedProperties>
  </xades:QualifyingProperties></ds:Object></ds:Signature></TrustServiceStatusList>`;
  return runXmlsec(['--sign'], template, signer.keyPem);
}

/** @throws Error unless xmlsec1 verifies the signature */
export function verifyByXmlsec(text: string, signer: TestCertificate): void {
  runXmlsec(['--verify'], text, signer.keyPem);
}

function runXmlsec(command: readonly string[], text: string, keyPem: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'chy-xmlsec-'));
  try {
    writeFileSync(join(directory, 'key.pem'), keyPem, { mode: 0o600 });
    writeFileSync(join(directory, 'in.xml'), text);
    const options = ['--privkey-pem', 'key.pem', '--id-attr:Id', 'SignedProperties', '--output', 'out.xml'];
    execFileSync('xmlsec1', [...command, ...options, 'in.xml'], { cwd: directory, stdio: 'pipe' });
    return command.includes('--sign') ? readFileSync(join(directory, 'out.xml'), 'utf8') : '';
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
