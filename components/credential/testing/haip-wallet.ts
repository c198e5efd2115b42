import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import { expect } from 'vitest';
import { parseCertificate } from '#core/trust/certificate.ts';
import { Attester } from './attester.ts';
import { type Fixture, openFixture } from './fixture.ts';
import { configurationOf, TestWallet, type WalletKey, walletKey } from './wallet.ts';

type Texts = Readonly<Record<string, string>>;

export const clientId = 'https://wallet.test';
const redirectUri = 'eudi-wallet://back?x=1';

/** An offer, and what a wallet pushes for it. */
export interface Flow {
  readonly offer: { readonly offerId: string; readonly txCode: string };
  readonly configurationId: string;
  readonly verifier: string;
  readonly pushed: Texts;
  readonly headers?: Texts;
}

/** What names the key of a code: a proof of it, its thumbprint, or both. */
interface Binding {
  readonly isProved: boolean;
  readonly isNamed: boolean;
}

/** A wallet in the profile haip-1.0 with an attested instance and one DPoP key, and the service that it talks to. */
export class HaipWallet {
  readonly fixture: Fixture;
  readonly wallet: TestWallet;
  readonly attester: Attester;
  readonly instance: WalletKey;
  readonly dpopKey: WalletKey;

  private constructor(
    fixture: Fixture,
    attester: Attester,
    { instance, dpopKey }: Pick<HaipWallet, 'instance' | 'dpopKey'>,
  ) {
    this.fixture = fixture;
    this.wallet = new TestWallet(fixture);
    this.attester = attester;
    this.instance = instance;
    this.dpopKey = dpopKey;
  }

  /** @param database the name of the test's database */
  static async open(database: string): Promise<HaipWallet> {
    const attester = await Attester.open();
    const authorities = [parseCertificate(new X509Certificate(attester.certificate.rootPem).raw)];
    const served = { profile: 'haip-1.0', authorities, requiresKeyAttestation: true } as const;
    const fixture = await openFixture(database, served);
    return new HaipWallet(fixture, attester, { instance: await walletKey(), dpopKey: await walletKey() });
  }

  close(): Promise<void> {
    return this.fixture.close();
  }

  form(path: string, fields: Texts, headers: Texts = {}) {
    return this.fixture.app.inject({
      method: 'POST',
      url: path,
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      payload: new URLSearchParams(fields).toString(),
    });
  }

  attested(change?: Parameters<Attester['headers']>[2]) {
    return this.attester.headers(this.instance, this.wallet.nowSeconds, change);
  }

  /** @param change members of the offer */
  async begin(change: Readonly<Record<string, unknown>> = {}): Promise<Flow> {
    const offer = (await this.wallet.offer(change)).json();
    const verifier = randomBytes(32).toString('base64url');
    const configurationId = configurationOf(offer);
    const pushed = {
      response_type: 'code',
      client_id: clientId,
      issuer_state: offer.credentialOffer.grants.authorization_code.issuer_state,
      redirect_uri: redirectUri,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      scope: configurationId,
      state: 's-1',
    };
    return { offer, configurationId, verifier, pushed };
  }

  async push({ pushed, headers }: Flow): Promise<string> {
    const answer = await this.form('/par', pushed, { ...(await this.attested()), ...headers });
    expect(answer.statusCode).toBe(201);
    return answer.json().request_uri;
  }

  /** The flow with what binds its code to the DPoP key. */
  async bind(flow: Flow, { isProved, isNamed }: Binding): Promise<Flow> {
    const thumbprint = await calculateJwkThumbprint(this.dpopKey.jwk);
    return {
      ...flow,
      pushed: { ...flow.pushed, ...(isNamed && { dpop_jkt: thumbprint }) },
      headers: isProved ? { dpop: await this.proof('/par') } : {},
    };
  }

  /** A DPoP proof. */
  async proof(path: string, key = this.dpopKey): Promise<string> {
    return this.wallet.dpop(key, { path, nonce: await this.wallet.dpopNonce() });
  }

  approve(requestUri: string, txCode: string) {
    return this.form('/authorize', { request_uri: requestUri, client_id: clientId, tx_code: txCode });
  }

  async codeOf(flow: Flow): Promise<string> {
    const answer = await this.approve(await this.push(flow), flow.offer.txCode);
    expect(answer.statusCode).toBe(303);
    return new URL(String(answer.headers.location)).searchParams.get('code') ?? '';
  }

  async token(fields: Texts, key = this.dpopKey, headers?: Texts) {
    const dpop = await this.proof('/token', key);
    return this.form('/token', fields, { ...(headers ?? (await this.attested())), dpop });
  }

  grantOf({ verifier }: Flow, code: string) {
    return {
      grant_type: 'authorization_code',
      code,
      code_verifier: verifier,
      redirect_uri: redirectUri,
    };
  }

  async tokensOf(flow: Flow) {
    const answer = await this.token(this.grantOf(flow, await this.codeOf(flow)));
    expect(answer.statusCode).toBe(200);
    return answer.json();
  }

  async credential(accessToken: string, body: Readonly<Record<string, unknown>>, key = this.dpopKey) {
    const nonce = await this.wallet.dpopNonce();
    const dpop = await this.wallet.dpop(key, { path: '/credential', nonce, accessToken });
    return this.wallet.credential(accessToken, body, { authorization: `DPoP ${accessToken}`, dpop });
  }
}
