import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';

/** Who signs in at the stand-in, and what it says about them. */
export type Person = Readonly<Record<string, unknown>> & { readonly sub: string };

interface Grant {
  readonly person: Person;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly nonce: string | undefined;
  readonly challenge: string | undefined;
  readonly isOpenId: boolean;
}

/** What the stand-in does otherwise than it should. */
export interface Faults {
  /** Changes the claims of ID tokens. */
  claims?: (claims: Record<string, unknown>) => Record<string, unknown>;
  /** Changes the header of ID tokens. */
  header?: (header: Record<string, unknown>) => Record<string, unknown>;
  /** Writes the ID token itself. */
  token?: (token: string) => string;
  /** Changes the answer of the token endpoint. */
  tokenAnswer?: (answer: Record<string, unknown>) => Record<string, unknown>;
  /** Changes what is published. */
  metadata?: (metadata: Record<string, unknown>) => Record<string, unknown>;
  /** Changes the keys that are published. */
  keys?: (keys: JWK[]) => JWK[];
  userinfo?: (claims: Record<string, unknown>) => Record<string, unknown>;
  /** Answers a path itself. */
  answer?: (path: string, response: ServerResponse) => boolean;
}

export const clientId = 'chancery';
export const clientSecret = 'of the stand-in / ä';

/** A provider of the tests: OpenID Connect, and the two REST routes of GitHub. It may misbehave. */
export class StandIn {
  /** Its origin and its issuer. */
  origin = '';
  faults: Faults = {};
  /** Paths that were asked, in order. */
  readonly asked: string[] = [];
  /** Headers `Authorization` of the token endpoint. */
  readonly authorizations: (string | undefined)[] = [];
  /** Addresses of GitHub's person. */
  emails: object[] = [];

  readonly #nowMs: () => number;
  readonly #grants = new Map<string, Grant>();
  readonly #tokens = new Map<string, Person>();
  readonly #server: Server;
  #keys: SigningKeys | undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#server = createServer((request, response) => this.#serve(request, response));
  }

  async start(): Promise<this> {
    await this.rotate();
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.origin = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.closeAllConnections();
      this.#server.close(() => resolve());
    });
  }

  /** Replaces the signing key. */
  async rotate(): Promise<void> {
    const { publicKey, privateKey } = await generateKeyPair('RS256');
    const kid = randomBytes(4).toString('hex');
    this.#keys = { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' } };
  }

  /** What the provider sends back when a person has agreed to an authorization request. */
  agree(authorizationUrl: string, person: Person): { readonly code: string; readonly state: string } {
    const { searchParams } = new URL(authorizationUrl);
    const read = (name: string) => searchParams.get(name) ?? undefined;
    const [code, state] = [randomBytes(16).toString('hex'), read('state') ?? ''];
    if (read('response_type') !== 'code') throw new Error('not the code flow');
    this.#grants.set(code, {
      person,
      clientId: read('client_id') ?? '',
      redirectUri: read('redirect_uri') ?? '',
      nonce: read('nonce'),
      challenge: read('code_challenge_method') === 'S256' ? read('code_challenge') : undefined,
      isOpenId: read('scope')?.split(' ').includes('openid') === true,
    });
    return { code, state };
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { pathname: path } = new URL(request.url ?? '/', this.origin);
    this.asked.push(path);
    const { faults } = this;
    if (faults.answer?.(path, response) === true) return;
    const person = this.#tokens.get((request.headers.authorization ?? '').replace(/^Bearer /, ''));
    const answers: Readonly<Record<string, () => unknown>> = {
      '/.well-known/openid-configuration': () => faults.metadata?.(this.#metadata()) ?? this.#metadata(),
      '/jwks': () => ({ keys: faults.keys?.([this.#key.jwk]) ?? [this.#key.jwk] }),
      '/userinfo': () => person && (faults.userinfo?.({ ...person }) ?? person),
      '/user': () => person && { id: Number(person.sub), login: 'octo', name: person['name'] },
      '/user/emails': () => person && this.emails,
    };
    if (path === '/token') return void this.#redeem(request, response);
    const body = answers[path]?.();
    send(response, body === undefined ? 401 : 200, body ?? {});
  }

  get #key(): SigningKeys {
    if (this.#keys === undefined) throw new Error('not started');
    return this.#keys;
  }

  #metadata(): Record<string, unknown> {
    const { origin } = this;
    return {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      userinfo_endpoint: `${origin}/userinfo`,
      jwks_uri: `${origin}/jwks`,
      scopes_supported: ['openid', 'email', 'profile'],
      id_token_signing_alg_values_supported: ['RS256'],
    };
  }

  async #redeem(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = new URLSearchParams(await textOf(request));
    this.authorizations.push(request.headers.authorization);
    if (form.get('grant_type') === 'client_credentials') {
      const isKnown = secretOf(request, form) === clientSecret;
      const own = { access_token: 'own', token_type: 'Bearer', expires_in: 60 };
      return isKnown ? send(response, 200, own) : send(response, 401, { error: 'invalid_client' });
    }
    const grant = this.#take(form);
    if (grant === undefined) return send(response, 400, { error: 'invalid_grant' });
    const accessToken = randomBytes(16).toString('hex');
    this.#tokens.set(accessToken, grant.person);
    const answer = {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: 60,
      ...(grant.isOpenId && { id_token: await this.#idToken(grant) }),
    };
    send(response, 200, this.faults.tokenAnswer?.(answer) ?? answer);
  }

  #take(form: URLSearchParams): Grant | undefined {
    const code = form.get('code') ?? '';
    const grant = this.#grants.get(code);
    this.#grants.delete(code);
    const isProved =
      grant?.challenge === undefined || grant.challenge === s256(form.get('code_verifier') ?? '');
    return isProved && form.get('redirect_uri') === grant?.redirectUri ? grant : undefined;
  }

  async #idToken({ person, clientId: aud, nonce }: Grant): Promise<string> {
    const now = Math.floor(this.#nowMs() / 1_000);
    const { faults } = this;
    const claims = { iss: this.origin, aud, iat: now, exp: now + 300, ...(nonce && { nonce }), ...person };
    const header = { alg: 'RS256', kid: this.#key.kid };
    const token = await new SignJWT(faults.claims?.(claims) ?? claims)
      .setProtectedHeader((faults.header?.(header) ?? header) as typeof header)
      .sign(this.#key.privateKey);
    return faults.token?.(token) ?? token;
  }
}

interface SigningKeys {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

const s256 = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

function secretOf({ headers }: IncomingMessage, form: URLSearchParams): string | undefined {
  const [, basic] = /^Basic (.+)$/.exec(headers.authorization ?? '') ?? [];
  if (basic === undefined) return form.get('client_secret') ?? undefined;
  const [, secret = ''] = Buffer.from(basic, 'base64').toString().split(':');
  // RFC 6749, 2.3.1: encoded as a form before it is encoded for HTTP Basic
  return new URLSearchParams(`s=${secret}`).get('s') ?? undefined;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
