import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { issueMdoc } from '#core/credential/mdoc/issue.ts';
import { issueStatusCwt } from '#core/credential/mdoc/status-cwt.ts';
import {
  deviceKeys,
  docType,
  elements,
  nameSpace,
  partsOf,
  presentParts,
  session,
} from '#core/credential/mdoc/testing/documents.ts';
import { DOCUMENT_SIGNER, openId4VpTranscript } from '#core/credential/mdoc/verify.ts';
import { compactSdJwt, prepareSdJwt } from '#core/credential/sd-jwt/issue.ts';
import { encoded, keyPair } from '#core/credential/sd-jwt/testing/issuer.ts';
import { buildStatusList, STATUS_BITS } from '#core/credential/status-list/status-list.ts';
import { createSigner } from '#core/crypto/sign.ts';
import { encodeBase64, encodeBase64Url } from '#core/encoding/base64.ts';
import { utf8 } from '#core/encoding/text.ts';
import {
  basicConstraints,
  chainDers,
  ecKey,
  extension,
  keyUsage,
  purposes,
} from '#core/trust/testing/chains.ts';
import { octets } from '#core/trust/testing/der-writer.ts';
import { type Counts, script } from './programs.ts';

const issuerUrl = 'https://issuer.example';
const vct = `${issuerUrl}/vct/permit`;
const status = { index: 7, uri: `${issuerUrl}/lists/1` } as const;
const daySeconds = 86_400;

const claims = {
  given_name: 'Zoë',
  'a/b~c': 'Größe',
  address: { locality: 'Ulm', country: 'DE', lines: ['Am Markt 1', '2. Stock'] },
  nationalities: ['DE', 'FR', { code: 'IT' }],
  height: 1.75,
  member: true,
  none: null,
} as const;

/** What the holder may hold back: all of the top level, elements, members inside of others, nothing. */
const disclosable: readonly (readonly string[] | undefined)[] = [
  undefined,
  ['/given_name', '/a~1b~0c', '/nationalities/0', '/nationalities/2', '/nationalities/2/code'],
  ['/address', '/address/country', '/address/lines', '/address/lines/0', '/address/lines/1', '/none'],
  [],
];

/** A document signer below a root, which must have a key identifier (RFC 5280 section 4.2.1.2). */
function certifiedSigner(seconds: number) {
  const keys = [ecKey('P-256'), ecKey('P-256')] as const;
  const keyIdentifier = extension('2.5.29.14', octets(randomBytes(20)));
  const validity = {
    notBeforeMs: (seconds - daySeconds) * 1000,
    notAfterMs: (seconds + 2 * daySeconds) * 1000,
  };
  const [leaf, root] = chainDers('City of Test', keys, {
    0: { ...validity, extensions: [basicConstraints(false), keyUsage(0), purposes(DOCUMENT_SIGNER.purpose)] },
    1: { ...validity, extensions: [basicConstraints(true), keyUsage(5, 6), keyIdentifier] },
  });
  if (leaf === undefined || root === undefined) throw new Error('no chain');
  const { d = '' } = keys[0].privateKey.export({ format: 'jwk' });
  const signer = createSigner({ algorithm: 'NISTP256', privateKey: Buffer.from(d, 'base64url') });
  const sign = async (message: Uint8Array) => signer.sign(message);
  return { root, leaf, sign, signMessage: (text: string) => signer.sign(utf8(text)) };
}

type CertifiedSigner = ReturnType<typeof certifiedSigner>;

/** An SD-JWT VC of each form, with the key of its holder: another program presents it. */
function sdJwts({ leaf, signMessage }: CertifiedSigner, seconds: number) {
  const holder = keyPair();
  const payload = {
    iss: issuerUrl,
    vct,
    iat: seconds,
    exp: seconds + daySeconds,
    cnf: { jwk: holder.jwk },
    status: { status_list: { idx: status.index, uri: status.uri } },
  };
  const header = { alg: 'ES256', typ: 'dc+sd-jwt', x5c: [encodeBase64(leaf)] };
  const issued = disclosable.map((paths) => {
    const unsigned = prepareSdJwt({ header, payload, claims, disclosable: paths }, randomBytes);
    return compactSdJwt(unsigned, signMessage(unsigned.signingInput));
  });
  return { issued, payload, claims, holderKey: holder.privateKey.export({ format: 'jwk' }) };
}

// openvc-core decodes no half-precision numbers, the shortest form of RFC 8949 that we write.
const { ratio: _, ...shownElements } = elements;
const nameSpaces = { [nameSpace]: shownElements, 'org.example.second': { reference: 'P-1', level: -7 } };

/** A presented mdoc; the device signs for the session. */
async function mdoc({ leaf, sign }: CertifiedSigner, seconds: number) {
  const device = deviceKeys();
  const issued = await issueMdoc(
    {
      docType,
      nameSpaces,
      deviceKey: device.jwk,
      signedMs: seconds * 1000,
      validFromMs: seconds * 1000,
      validUntilMs: (seconds + daySeconds) * 1000,
      status,
      certificates: [leaf],
    },
    { random: randomBytes, sign },
  );
  const transcript = encodeBase64Url(openId4VpTranscript(session));
  return { response: presentParts(partsOf(issued), device), transcript, docType, nameSpaces };
}

/** A status list of each number of bits in both forms of a token, with the value of every entry. */
async function statusLists({ leaf, sign, signMessage }: CertifiedSigner, seconds: number) {
  const count = 4096;
  return Promise.all(
    STATUS_BITS.map(async (bits) => {
      const values = Array.from(randomBytes(count), (byte) => byte % (1 << bits));
      const list = buildStatusList(
        bits,
        count,
        values.map((value, index) => ({ index, value })),
      );
      const compressed = deflateSync(list.bytes, { level: 9 });
      const [issuedAt, expiresAt, ttlSeconds] = [seconds, seconds + daySeconds, 300];
      const { uri } = status;
      const header = encoded({ alg: 'ES256', typ: 'statuslist+jwt', x5c: [encodeBase64(leaf)] });
      const payload = encoded({
        sub: uri,
        iss: issuerUrl,
        iat: issuedAt,
        exp: expiresAt,
        ttl: ttlSeconds,
        status_list: { bits, lst: encodeBase64Url(compressed) },
      });
      const input = `${header}.${payload}`;
      const cwtClaims = { uri, issuedAt, expiresAt, ttlSeconds, bits, compressed, certificates: [leaf] };
      const cwt = await issueStatusCwt(cwtClaims, sign);
      return {
        bits,
        values,
        uri,
        jwt: `${input}.${encodeBase64Url(signMessage(input))}`,
        cwt: encodeBase64Url(cwt),
      };
    }),
  );
}

/**
 * Credentials and status lists of this product, judged by libraries of others; `flips` places of each are changed, and
 * every changed copy must be refused.
 */
export async function issuedCredentials(dir: string, flips: number): Promise<Counts> {
  const seconds = Math.floor(Date.now() / 1000);
  const signer = certifiedSigner(seconds);
  const input = {
    root: encodeBase64(signer.root),
    leaf: encodeBase64(signer.leaf),
    sdJwts: sdJwts(signer, seconds),
    mdoc: await mdoc(signer, seconds),
    statusLists: await statusLists(signer, seconds),
  };
  const file = join(dir, 'issued-credentials.json');
  writeFileSync(file, JSON.stringify(input), { mode: 0o600 });
  return script('issued_credentials.py', [file, '--flips', String(flips)]);
}
