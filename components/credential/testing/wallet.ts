import { createHash, randomUUID } from 'node:crypto';
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTPayload,
  SignJWT,
} from 'jose';
import type { App } from '#kit/http/http.ts';
import { PRE_AUTHORIZED_GRANT } from '../protocol/grants.ts';
import { type Fixture, issuerUrl } from './fixture.ts';

type Answer = Awaited<ReturnType<App['inject']>>;
type Members = Readonly<Record<string, unknown>>;
type Headers = Readonly<Record<string, string>>;

/** A key of a wallet. */
export interface WalletKey {
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
  readonly thumbprint: string;
}

export async function walletKey(alg = 'ES256'): Promise<WalletKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = await exportJWK(publicKey);
  return { alg, privateKey, jwk, thumbprint: await calculateJwkThumbprint(jwk) };
}

interface JwtChange {
  readonly header?: Members | undefined;
  readonly payload?: JWTPayload | undefined;
}

/** A JWT that carries its key; members of `header` replace those of a proof. */
export async function possession(key: WalletKey, { header = {}, payload = {} }: JwtChange): Promise<string> {
  return new SignJWT(payload)
    .setProtectedHeader({ typ: 'openid4vci-proof+jwt', alg: key.alg, jwk: key.jwk, ...header })
    .sign(key.privateKey);
}

/** What a wallet sends to the service, without any check of its own. */
export class TestWallet {
  readonly #fixture: Fixture;
  readonly #app: App;

  constructor(fixture: Fixture, app: App = fixture.app) {
    this.#fixture = fixture;
    this.#app = app;
  }

  get nowSeconds(): number {
    return Math.floor(this.#fixture.clock.nowMs() / 1000);
  }

  /** Creates an offer as a service. */
  async offer(change: Members = {}): Promise<Answer> {
    const { organizationId, walletAddress } = this.#fixture.organization;
    return this.#app.inject({
      method: 'POST',
      url: '/api/v1/offers',
      headers: { authorization: 'Bearer service' },
      payload: {
        issuerWalletAddress: walletAddress,
        tenantId: organizationId,
        credentialType: 'Site permit',
        claims: { permitNumber: 'P-17', area: 620, address: { street: 'Main street 1', town: 'Test' } },
        ...change,
      },
    });
  }

  async token(form: Headers, headers: Headers = {}): Promise<Answer> {
    return this.#app.inject({
      method: 'POST',
      url: '/token',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      payload: new URLSearchParams({ grant_type: PRE_AUTHORIZED_GRANT, ...form }).toString(),
    });
  }

  async nonce(): Promise<string> {
    return (await this.#app.inject({ method: 'POST', url: '/nonce' })).json().c_nonce;
  }

  async dpopNonce(): Promise<string> {
    const { headers } = await this.#app.inject({ method: 'POST', url: '/nonce' });
    return String(headers['dpop-nonce']);
  }

  async credential(token: string, body: Members, headers: Headers = {}): Promise<Answer> {
    return this.#app.inject({
      method: 'POST',
      url: '/credential',
      headers: { authorization: `Bearer ${token}`, ...headers },
      payload: body,
    });
  }

  async proof(key: WalletKey, { header, payload }: JwtChange = {}): Promise<string> {
    const valid = { aud: issuerUrl, iat: this.nowSeconds, nonce: await this.nonce() };
    return possession(key, { payload: { ...valid, ...payload }, header });
  }

  async dpop(
    key: WalletKey,
    to: { readonly path: string; readonly nonce?: string; readonly accessToken?: string },
    { header, payload }: JwtChange = {},
  ): Promise<string> {
    const { path, nonce, accessToken } = to;
    const valid = {
      jti: randomUUID(),
      htm: 'POST',
      htu: `${issuerUrl}${path}`,
      iat: this.nowSeconds,
      ...(nonce !== undefined && { nonce }),
      ...(accessToken !== undefined && {
        ath: createHash('sha256').update(accessToken).digest('base64url'),
      }),
    };
    return possession(key, { payload: { ...valid, ...payload }, header: { typ: 'dpop+jwt', ...header } });
  }

  /** Offer and access token in one step. */
  async accepted(change: Members = {}) {
    const offer = (await this.offer(change)).json();
    const form = {
      'pre-authorized_code': offer.preAuthorizedCode,
      ...(offer.txCode !== undefined && { tx_code: offer.txCode }),
    };
    const token = (await this.token(form)).json();
    return { offer, accessToken: String(token.access_token), configurationId: configurationOf(offer) };
  }

  /** The whole flow; the answer of `/credential`. */
  async issued(key: WalletKey, change: Members = {}) {
    const { offer, accessToken, configurationId } = await this.accepted(change);
    const body = { credential_configuration_id: configurationId, proofs: { jwt: [await this.proof(key)] } };
    return { offer, accessToken, configurationId, answer: await this.credential(accessToken, body) };
  }
}

export function configurationOf(offer: {
  credentialOffer: { credential_configuration_ids: string[] };
}): string {
  return String(offer.credentialOffer.credential_configuration_ids[0]);
}

/** The parts of a compact SD-JWT, decoded without any verification. */
export function decodeSdJwt(compact: string) {
  const [jws = '', ...rest] = compact.split('~');
  const [header = '', payload = ''] = jws.split('.');
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
  return {
    jws,
    header: read(header),
    payload: read(payload),
    disclosures: rest.slice(0, -1).map(read),
    rest,
  };
}
