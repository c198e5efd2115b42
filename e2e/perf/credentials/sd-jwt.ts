import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from 'node:crypto';
import { SDJwtInstance, type SdJwtPayload } from '@sd-jwt/core';
import { compactSdJwt, prepareSdJwt } from '#core/credential/sd-jwt/issue.ts';
import { judgeSdJwtForm, verifySdJwtVc } from '#core/credential/sd-jwt/verify.ts';
import { findJwkKey } from '#core/crypto/signature-key.ts';
import type { Row } from '../report.ts';
import type { Lengths } from '../workflows/lengths.ts';
import { tenClaims } from './claims.ts';

const vct = 'urn:platform:credential:site-permit';
const audience = 'x509_san_dns:verifier.example';
const nonce = 'n-0S6_WzA2Mj';
const names: (keyof typeof tenClaims)[] = [
  'permitNumber',
  'holder',
  'street',
  'locality',
  'parcel',
  'area',
  'storeys',
  'purpose',
  'decidedOn',
  'office',
];
/** Two of the ten are disclosed. */
const shown = { permitNumber: true, area: true };

const pair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const dsaEncoding = 'ieee-p1363';
const signed = (key: KeyObject, data: string) => sign('sha256', Buffer.from(data), { key, dsaEncoding });
const signerOf = (key: KeyObject) => (data: string) => signed(key, data).toString('base64url');
const verifierOf = (key: KeyObject) => (data: string, signature: string) =>
  verify('sha256', Buffer.from(data), { key, dsaEncoding }, Buffer.from(signature, 'base64url'));

class CredentialInstance extends SDJwtInstance<SdJwtPayload> {
  protected override type = 'dc+sd-jwt';
}

/**
 * SD-JWT VCs with ten claims, issued, and verified with two of them and a key binding, by core and by the library of the
 * OpenWallet Foundation, by turns. Both sign and verify with node:crypto.
 */
export async function sdJwts({ rounds, warmUp, helperRequests }: Lengths): Promise<readonly Row[]> {
  const [issuer, holder] = [pair(), pair()];
  const jwk = { ...holder.publicKey.export({ format: 'jwk' }) };
  const seconds = Math.floor(Date.now() / 1000);
  const payload = { iss: 'https://issuer.example', vct, iat: seconds, exp: seconds + 3600, cnf: { jwk } };
  const library = new CredentialInstance({
    signer: signerOf(issuer.privateKey),
    verifier: verifierOf(issuer.publicKey),
    signAlg: 'ES256',
    kbSigner: signerOf(holder.privateKey),
    // The key is that of the credential, as a verifier finds it.
    kbVerifier: (data, signature) =>
      verifierOf(createPublicKey({ key: jwk, format: 'jwk' }))(data, signature),
    kbSignAlg: 'ES256',
    hasher: (data) =>
      createHash('sha256')
        .update(typeof data === 'string' ? data : new Uint8Array(data))
        .digest(),
    hashAlg: 'sha-256',
    saltGenerator: () => randomBytes(16).toString('base64url'),
  });
  const issueHere = (): string => {
    const header = { alg: 'ES256', typ: 'dc+sd-jwt' };
    const unsigned = prepareSdJwt(
      { header, payload, claims: tenClaims, disclosable: undefined },
      randomBytes,
    );
    return compactSdJwt(unsigned, signed(issuer.privateKey, unsigned.signingInput));
  };
  const issueThere = () => library.issue({ ...payload, ...tenClaims }, { _sd: names });
  const kb = { payload: { iat: seconds, aud: audience, nonce } };
  const presentation = await library.present(await issueThere(), shown, { kb });
  const issuerKey = findJwkKey(issuer.publicKey.export({ format: 'jwk' }));
  if (issuerKey === undefined) throw new Error('the key of the issuer cannot be read');
  const algorithms = ['ES256'] as const;
  const expectation = {
    issuerKey,
    algorithms,
    types: [vct],
    keyBinding: { nonce, audience, algorithms },
    atMs: seconds * 1000,
  };
  const verifyHere = (): void => {
    const form = judgeSdJwtForm(presentation);
    const verified = form.result && verifySdJwtVc(form.result, expectation);
    if (verified?.result === undefined) throw new Error('the presentation was not verified');
  };
  const verifyThere = () => library.verify(presentation, { keyBindingNonce: nonce });
  const turns = { rounds, warmUp, times: helperRequests };
  return [
    { measure: 'SD-JWT VC issued', ...(await byTurns(issueHere, issueThere, turns)), bound: atLeast(3) },
    {
      measure: 'SD-JWT VC presented and verified',
      ...(await byTurns(verifyHere, verifyThere, turns)),
      bound: atLeast(1.7),
    },
  ];
}

const atLeast = (share: number): Row['bound'] => ({ kind: 'share', atLeast: share });

interface Turns {
  readonly rounds: number;
  readonly warmUp: number;
  readonly times: number;
}

async function byTurns(
  here: () => unknown,
  there: () => Promise<unknown>,
  { rounds, warmUp, times }: Turns,
): Promise<Pick<Row, 'ours' | 'raw' | 'unit'>> {
  const ours: number[] = [];
  const raw: number[] = [];
  for (let round = -warmUp; round < rounds; round += 1) {
    const figures = [await perCpuSecond(here, times), await perCpuSecond(there, times)] as const;
    if (round < 0) continue;
    ours.push(figures[0]);
    raw.push(figures[1]);
  }
  return { ours, raw, unit: 'a CPU second' };
}

async function perCpuSecond(run: () => unknown, times: number): Promise<number> {
  const before = process.cpuUsage();
  for (let time = 0; time < times; time += 1) await run();
  const { user, system } = process.cpuUsage(before);
  return (times * 1_000_000) / (user + system);
}
