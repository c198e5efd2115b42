import { createHash } from 'node:crypto';
import { CompactEncrypt, importJWK, type JWTPayload, SignJWT } from 'jose';
import type { App } from '#kit/http/http.ts';
import { type Fixture, issuerUrl } from './fixture.ts';
import { decodeSdJwt, TestWallet, type WalletKey, walletKey } from './wallet.ts';

type Answer = Awaited<ReturnType<App['inject']>>;
type Members = Readonly<Record<string, unknown>>;

/** A credential in the hands of its holder. */
export interface Held {
  readonly compact: string;
  readonly key: WalletKey;
  readonly credentialId: string;
}

/** The members of a request object that a wallet uses. */
export interface ReadRequest {
  readonly client_id: string;
  readonly nonce: string;
  readonly state: string;
  readonly response_uri: string;
  readonly response_mode: string;
  readonly client_metadata: {
    readonly jwks?: { readonly keys: readonly Readonly<Record<string, string>>[] };
  };
  readonly [member: string]: unknown;
}

/** Issues, asks and answers, without any check of its own. */
export class Presenter {
  readonly #fixture: Fixture;
  readonly wallet: TestWallet;

  constructor(fixture: Fixture) {
    this.#fixture = fixture;
    this.wallet = new TestWallet(fixture);
  }

  async hold(change: Members = {}, alg = 'ES256'): Promise<Held> {
    const key = await walletKey(alg);
    const { answer, offer } = await this.wallet.issued(key, change);
    const state = await this.#fixture.app.inject({
      url: `/api/v1/offers/${offer.offerId}`,
      headers: { authorization: 'Bearer service' },
    });
    return {
      compact: answer.json().credentials[0].credential,
      key,
      credentialId: String(state.json().credentialIds[0]),
    };
  }

  async ask(change: Members = {}, authorization = 'Bearer service'): Promise<Answer> {
    return this.#fixture.app.inject({
      method: 'POST',
      url: '/api/v1/verifier/requests',
      headers: { authorization },
      payload: {
        credentialType: 'urn:platform:credential:site-permit',
        requiredClaims: ['permitNumber'],
        ...change,
      },
    });
  }

  async open(requestId: string): Promise<ReadRequest> {
    const answer = await this.#fixture.app.inject({
      url: `/api/v1/verifier/requests/${requestId}/request-object`,
    });
    return JSON.parse(Buffer.from(answer.body.split('.')[1] ?? '', 'base64url').toString());
  }

  /** Asks, and reads the request as a wallet does. */
  async asked(change: Members = {}): Promise<{ readonly requestId: string; readonly request: ReadRequest }> {
    const { requestId } = (await this.ask(change)).json();
    return { requestId, request: await this.open(requestId) };
  }

  /** A presentation that discloses some claims; members replace those of a valid key binding. */
  async present(
    { compact, key }: Held,
    request: Pick<ReadRequest, 'client_id' | 'nonce'>,
    {
      disclose,
      header = {},
      payload = {},
    }: { disclose?: readonly string[]; header?: Members; payload?: JWTPayload } = {},
  ): Promise<string> {
    const { jws, disclosures, rest } = decodeSdJwt(compact);
    const chosen = rest.slice(0, -1).filter((_, index) => disclose?.includes(disclosures[index][1]) ?? true);
    const bound = [jws, ...chosen, ''].join('~');
    const binding = {
      iat: this.wallet.nowSeconds,
      aud: request.client_id,
      nonce: request.nonce,
      sd_hash: createHash('sha256').update(bound).digest('base64url'),
      ...payload,
    };
    const jwt = await new SignJWT(binding)
      .setProtectedHeader({ alg: key.alg, typ: 'kb+jwt', ...header })
      .sign(key.privateKey);
    return `${bound}${jwt}`;
  }

  async post(requestId: string, form: Readonly<Record<string, string>>): Promise<Answer> {
    return this.#fixture.app.inject({
      method: 'POST',
      url: `/api/v1/verifier/requests/${requestId}/direct-post`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams(form).toString(),
    });
  }

  /** Posts presentations by query id, encrypted where the request asks for it. */
  async answer(requestId: string, request: ReadRequest, presentations: Members): Promise<Answer> {
    if (request.response_mode === 'direct_post') {
      return this.post(requestId, { vp_token: JSON.stringify(presentations), state: request.state });
    }
    const response = await this.encrypt(request, { vp_token: presentations, state: request.state });
    return this.post(requestId, { response });
  }

  async encrypt(request: ReadRequest, payload: Members, header: Members = {}): Promise<string> {
    const [jwk = {}] = request.client_metadata.jwks?.keys ?? [];
    return new CompactEncrypt(Buffer.from(JSON.stringify(payload)))
      .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: jwk['kid'] ?? '', ...header })
      .encrypt(await importJWK({ ...jwk }, 'ECDH-ES'));
  }

  async result(requestId: string, query = '', authorization = 'Bearer service'): Promise<Answer> {
    const url = `/api/v1/verifier/requests/${requestId}/result${query}`;
    return this.#fixture.app.inject({ url, headers: { authorization } });
  }

  /** Asks for one credential, answers with it, and returns the result. */
  async verified(held: Held, ask: Members = {}, how: Parameters<Presenter['present']>[2] = {}) {
    const { requestId, request } = await this.asked(ask);
    const posted = await this.answer(requestId, request, {
      credential: [await this.present(held, request, how)],
    });
    if (posted.statusCode !== 200) throw new Error(posted.body);
    return (await this.result(requestId)).json();
  }
}

export const responseUriOf = (requestId: string): string =>
  `${issuerUrl}/api/v1/verifier/requests/${requestId}/direct-post`;
