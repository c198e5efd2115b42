import { sign } from 'node:crypto';
import { createLoTE, service, signLoTE, trustedEntity } from '@owf/eudi-lote';
import { GRANTED, jwsOf, WITHDRAWN } from '../lists.fixture.ts';
import type { ListCase } from './verdicts.ts';
import type { Cast } from './xml-cases.ts';

const types = 'http://uri.etsi.org/19602/SvcType';
const NOTIFIED = 'http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus/notified';

/** The list of `@owf/eudi-lote`: services that issue, that do not, and that are not granted any more. */
function entityList({ certificates, signers }: Cast) {
  const [one, two, three] = certificates;
  const evil = signers.evil.base64;
  const serviceWith = (type: string, certificate: string, status?: string) => {
    const built = service().name('A service').type(type).addCertificate(certificate);
    return (status === undefined ? built : built.status(status)).build();
  };
  const address = { StreetAddress: 'Main Street 1', Locality: 'Berlin', PostalCode: '10115', Country: 'DE' };
  const entity = [
    serviceWith(`${types}/PID/Issuance`, one),
    serviceWith(`${types}/WRPAC/Issuance`, two, GRANTED),
    serviceWith(`${types}/PubEAA/Issuance`, three, NOTIFIED),
    serviceWith(`${types}/PubEAA/Issuance`, evil),
    serviceWith(`${types}/PID/Issuance`, evil, WITHDRAWN),
    serviceWith(`${types}/PID/Revocation`, evil),
  ].reduce(
    (built, each) => built.addService(each),
    trustedEntity()
      .name('A provider')
      .postalAddress(address)
      .email('a@provider.example')
      .infoUri('https://provider.example'),
  );
  const scheme = {
    SchemeOperatorName: [{ lang: 'en', value: 'Operator' }],
    SchemeTerritory: 'DE',
    LoTESequenceNumber: 5,
    ListIssueDateTime: '2026-01-01T00:00:00Z',
    NextUpdate: '2050-01-01T00:00:00Z',
  };
  return createLoTE(scheme, [entity.build()]);
}

type EntityList = ReturnType<typeof entityList>;

/** The library writes fractions of seconds, which TS 119 602 clause 6.1.3 does not have. */
function inWholeSeconds(list: EntityList): EntityList {
  return JSON.parse(JSON.stringify(list).replaceAll(/\.\d+Z"/g, 'Z"'));
}

/** A copy of a list whose scheme has other members. */
function withScheme({ LoTE }: EntityList, change: object): object {
  return { LoTE: { ...LoTE, ListAndSchemeInformation: { ...LoTE.ListAndSchemeInformation, ...change } } };
}

/** Signed lists that must be refused, by what is wrong with them. */
function refusedTexts(cast: Cast, list: EntityList): Readonly<Record<string, string>> {
  const { signers } = cast;
  const signer = signers['P-256'];
  const [header = '', payload = '', signature = ''] = jwsOf(list, signer).split('.');
  const changed = Buffer.from(JSON.stringify(withScheme(list, { LoTESequenceNumber: 6 }))).toString(
    'base64url',
  );
  const unsecured = Buffer.from(JSON.stringify({ alg: 'none', x5c: [signer.base64] })).toString('base64url');
  return {
    'a changed payload': `${header}.${changed}.${signature}`,
    'a changed signature': `${header}.${payload}.${signature.slice(0, -4)}AAAA`,
    'no signature': `${unsecured}.${payload}.`,
    'another signer': jwsOf(list, signers['P-384'], { x5c: [signers['P-384'].base64] }),
    'another signer with the certificate of the pinned one': jwsOf(list, signers.stranger, {
      x5c: [signer.base64],
    }),
    'another signer before the pinned one': jwsOf(list, signers.stranger, {
      x5c: [signers.stranger.base64, signer.base64],
    }),
    'an HMAC': jwsOf(list, signer, { alg: 'HS256' }),
    'an algorithm of another key': jwsOf(list, signer, { alg: 'ES384' }),
    'no certificate': jwsOf(list, signer, { x5c: undefined }),
    'an unknown critical parameter': jwsOf(list, signer, { crit: ['x'], x: 1 }),
    'an absent critical parameter': jwsOf(list, signer, { crit: ['iat'] }),
    'the thumbprint of another certificate': jwsOf(list, signer, { 'x5t#S256': 'AAAA' }),
    'an unencoded payload': jwsOf(list, signer, { crit: ['b64'], b64: false }),
    'no list': jwsOf({ other: 1 }, signer),
    'an array': jwsOf([], signer),
    'a member twice': jwsOf('{"LoTE":{},"LoTE":{}}', signer),
    'a fraction as sequence number': jwsOf(withScheme(list, { LoTESequenceNumber: 1.5 }), signer),
    'a date that is none': jwsOf(withScheme(list, { ListIssueDateTime: 'today' }), signer),
    'no name of the operator': jwsOf(withScheme(list, { SchemeOperatorName: [] }), signer),
    'another version': jwsOf(withScheme(list, { LoTEVersionIdentifier: 2 }), signer),
  };
}

/** A list that `@owf/eudi-lote` makes and signs. */
async function signedByLibrary({ signers }: Cast, lote: EntityList): Promise<string> {
  const { base64, key } = signers['P-256'];
  const { jws } = await signLoTE({
    lote,
    keyId: 'signer',
    certificates: [`-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----`],
    signer: (input) =>
      sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url'),
  });
  return jws;
}

/** All lists of trusted entities as compact JWS (ETSI TS 119 602), good ones and bad ones. */
export async function jwsCases(cast: Cast): Promise<ListCase[]> {
  const made = entityList(cast);
  const list = inWholeSeconds(made);
  const { atMs, anchors, signers } = cast;
  const pinned = { signer: signers['P-256'].der, atMs };
  const good = {
    '@owf/eudi-lote': await signedByLibrary(cast, list),
    tests: jwsOf(list, signers['P-256']),
    'a critical parameter that is known': jwsOf(list, signers['P-256'], {
      crit: ['sigT'],
      sigT: '2026-01-01T00:00:00Z',
    }),
    'a closed list': jwsOf(withScheme(list, { NextUpdate: null }), signers['P-256']),
    'fractions of seconds': jwsOf(made, signers['P-256']),
    'an operator that is not the signer': jwsOf(
      withScheme(list, { SchemeOperatorName: [{ lang: 'en', value: 'Another' }] }),
      signers['P-256'],
    ),
  };
  return [
    ...Object.entries(good).map(([name, document]) => ({
      name: `JWS: ${name}`,
      document,
      ...pinned,
      expected: anchors,
    })),
    ...Object.entries(refusedTexts(cast, list)).map(([name, document]) => ({
      name: `JWS: ${name}`,
      document,
      ...pinned,
      expected: 'refused' as const,
    })),
  ];
}
