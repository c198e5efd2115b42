import 'reflect-metadata';
import { createHash, createPrivateKey, randomBytes, sign } from 'node:crypto';
import { BasicConstraintsExtension, X509CertificateGenerator } from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DS = 'http://www.w3.org/2000/09/xmldsig#';
const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#';
const SHA256 = 'http://www.w3.org/2001/04/xmlenc#sha256';
const ETSI = 'http://uri.etsi.org/TrstSvc';
const xades = 'xmlns:xades="http://uri.etsi.org/01903/v1.3.2#"';
const digest = (text: string | Uint8Array) => createHash('sha256').update(text).digest('base64');

async function authority(name: string) {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: `01${randomBytes(8).toString('hex')}`,
    name: `CN=${name}, O=Bench, C=DE`,
    notBefore: new Date('2020-01-01T00:00:00Z'),
    notAfter: new Date('2060-01-01T00:00:00Z'),
    keys,
    signingAlgorithm: algorithm,
    extensions: [new BasicConstraintsExtension(true, undefined, true)],
  });
  return { der: Buffer.from(certificate.rawData), keys };
}

/** A service of a national list with an earlier status, about as long as such entries are. */
function serviceOf(name: string, certificate: string): string {
  const status = (of: string) => `<ServiceStatus>${ETSI}/TrustedList/Svcstatus/${of}</ServiceStatus>`;
  const type = `<ServiceTypeIdentifier>${ETSI}/Svctype/CA/QC</ServiceTypeIdentifier>`;
  const names = ['en', 'de', 'fr']
    .map((each) => `<Name xml:lang="${each}">${name} (${each})</Name>`)
    .join('');
  const identity =
    '<ServiceDigitalIdentity><DigitalId><X509Certificate>' +
    `${certificate}</X509Certificate></DigitalId></ServiceDigitalIdentity>`;
  const start = '<StatusStartingTime>2024-01-01T00:00:00Z</StatusStartingTime>';
  return (
    `<TSPService><ServiceInformation>${type}<ServiceName>${names}</ServiceName>${identity}${status('granted')}` +
    `${start}</ServiceInformation><ServiceHistory><ServiceHistoryInstance>${type}<ServiceName>${names}` +
    `</ServiceName>${identity}${status('withdrawn')}${start}</ServiceHistoryInstance></ServiceHistory></TSPService>`
  );
}

/** The list in canonical form, without its signature. */
function bodyOf(sequence: number, services: readonly string[]): string {
  return (
    '<SchemeInformation><TSLVersionIdentifier>6</TSLVersionIdentifier>' +
    `<TSLSequenceNumber>${sequence}</TSLSequenceNumber><SchemeOperatorName><Name xml:lang="en">Bench</Name>` +
    '</SchemeOperatorName><SchemeTerritory>DE</SchemeTerritory>' +
    '<ListIssueDateTime>2026-01-01T00:00:00Z</ListIssueDateTime><NextUpdate><dateTime>2050-01-01T00:00:00Z' +
    '</dateTime></NextUpdate></SchemeInformation><TrustServiceProviderList><TrustServiceProvider><TSPServices>' +
    `${services.join('')}</TSPServices></TrustServiceProvider></TrustServiceProviderList>`
  );
}

const digestElements = (value: string, ns = '') =>
  `<ds:DigestMethod${ns} Algorithm="${SHA256}"></ds:DigestMethod><ds:DigestValue${ns}>${value}</ds:DigestValue>`;

function reference(attributes: string, transforms: readonly string[], value: string): string {
  const all = transforms.map((each) => `<ds:Transform Algorithm="${each}"></ds:Transform>`).join('');
  return (
    `<ds:Reference ${attributes}><ds:Transforms>${all}</ds:Transforms>` +
    `${digestElements(value)}</ds:Reference>`
  );
}

/** A trust list as ETSI TS 119 612 has it, signed by XAdES. */
export interface SignedLists {
  /** SHA-256 of the signer's certificate, hex. */
  readonly signer: string;
  /** The version of a sequence number. */
  version(sequence: number): Buffer;
}

/** Makes lists of at least so many bytes, of services with a certificate each. */
export async function makeLists(bytes: number): Promise<SignedLists> {
  const signer = await authority('Operator');
  const services: string[] = [];
  for (let size = 0; size < bytes; size += services.at(-1)?.length ?? bytes) {
    const name = `Service ${services.length}`;
    services.push(serviceOf(name, (await authority(name)).der.toString('base64')));
  }
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', signer.keys.privateKey));
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  const open = '<TrustServiceStatusList xmlns="http://uri.etsi.org/02231/v2#" Id="TL">';
  const close = '</TrustServiceStatusList>';
  const ns = ` xmlns:ds="${DS}"`;
  const properties =
    `<xades:SignedProperties ${xades} Id="properties"><xades:SignedSignatureProperties><xades:SigningTime>` +
    '2026-01-01T00:00:00Z</xades:SigningTime><xades:SigningCertificateV2><xades:Cert><xades:CertDigest>' +
    `${digestElements(digest(signer.der), ns)}</xades:CertDigest></xades:Cert></xades:SigningCertificateV2>` +
    '</xades:SignedSignatureProperties></xades:SignedProperties>';
  const version = (sequence: number): Buffer => {
    const body = bodyOf(sequence, services);
    const info =
      `<ds:SignedInfo${ns}><ds:CanonicalizationMethod Algorithm="${EXCLUSIVE}"></ds:CanonicalizationMethod>` +
      '<ds:SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"></ds:SignatureMethod>' +
      reference('URI=""', [`${DS}enveloped-signature`, EXCLUSIVE], digest(`${open}${body}${close}`)) +
      reference(
        'Type="http://uri.etsi.org/01903#SignedProperties" URI="#properties"',
        [EXCLUSIVE],
        digest(properties),
      ) +
      '</ds:SignedInfo>';
    const value = sign('sha256', Buffer.from(info), { key, dsaEncoding: 'ieee-p1363' }).toString('base64');
    const certificate = signer.der.toString('base64');
    const signature =
      `<ds:Signature${ns} Id="signature">${info}<ds:SignatureValue>${value}</ds:SignatureValue><ds:KeyInfo>` +
      `<ds:X509Data><ds:X509Certificate>${certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo><ds:Object>` +
      `<xades:QualifyingProperties ${xades} Target="#signature">${properties}</xades:QualifyingProperties>` +
      '</ds:Object></ds:Signature>';
    return Buffer.from(`${open}${body}${signature}${close}`);
  };
  return { signer: createHash('sha256').update(signer.der).digest('hex'), version };
}
