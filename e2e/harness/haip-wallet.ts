import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { clientAuthenticationClientAttestationJwt } from '@openid4vc/oauth2';
import { Openid4vciClient, setGlobalConfig } from '@openid4vc/openid4vci';
import { exportJWK, generateKeyPair, importPKCS8, type JWK, SignJWT } from 'jose';
import type { IssuedCertificate } from './issued-certificate.ts';
import type { HeldCredential } from './openid4vc-wallet.ts';

// Local mode listens on plain HTTP of this machine.
setGlobalConfig({ allowInsecureUrls: true });

type Callbacks = ConstructorParameters<typeof Openid4vciClient>[0]['callbacks'];
type Members = Readonly<Record<string, unknown>>;

interface WalletKey {
  readonly jwk: { readonly kty: string; readonly crv: string; readonly x: string; readonly y: string };
  sign(header: Members, payload: Members): Promise<string>;
}

const clientId = 'https://wallet.example';
const redirectUri = 'https://wallet.example/back';

/** A wallet of another maker in the profile haip-1.0: attested by its maker, with PAR, PKCE and DPoP. */
export class HaipWallet {
  readonly #maker: IssuedCertificate;
  readonly #keys = new Map<string, WalletKey>();

  /** @param maker the certificate that the maker attests its wallets with */
  constructor(maker: IssuedCertificate) {
    this.#maker = maker;
  }

  /**
   * Takes an offer from its link.
   * @param approve what the person does in the browser: given the address, gives where the page sends them
   */
  async take(link: string, approve: (url: string) => Promise<string>): Promise<HeldCredential> {
    const client = await this.#client();
    const credentialOffer = await client.resolveCredentialOffer(link);
    const issuerMetadata = await client.resolveIssuerMetadata(credentialOffer.credential_issuer);
    const [credentialConfigurationId = ''] = credentialOffer.credential_configuration_ids;
    const started = await client.initiateAuthorization({
      credentialOffer,
      issuerMetadata,
      clientId,
      redirectUri,
      scope: credentialConfigurationId,
      state: 'state-1',
    });
    if (!('authorizationRequestUrl' in started)) throw new Error('the issuer asks for a presentation');
    const back = await approve(started.authorizationRequestUrl);
    const answer = client.parseAndVerifyAuthorizationResponseRedirectUrl({
      url: back,
      authorizationServerMetadata: issuerMetadata.authorizationServers[0] ?? missing('authorization server'),
    });
    const dpopKey = await this.#createKey();
    const given = await client.retrieveAuthorizationCodeAccessTokenFromOffer({
      credentialOffer,
      issuerMetadata,
      authorizationCode: answer.code ?? missing('code'),
      pkceCodeVerifier: started.pkce?.codeVerifier ?? missing('verifier'),
      redirectUri,
      dpop: { signer: signerOf(dpopKey) },
    });
    const { c_nonce: nonce } = await client.requestNonce({ issuerMetadata });
    const key = await this.#createKey();
    const signer = signerOf(key);
    const proof = { issuerMetadata, credentialConfigurationId, signer, nonce };
    const { jwt } = await client.createCredentialRequestJwtProof(proof);
    const { credentialResponse } = await client.retrieveCredentials({
      issuerMetadata,
      credentialConfigurationId,
      accessToken: given.accessTokenResponse.access_token,
      proofs: { jwt: [jwt] },
      ...(given.dpop !== undefined && { dpop: given.dpop }),
    });
    const [one] = credentialResponse.credentials ?? [];
    const credential = typeof one === 'object' && 'credential' in one ? one.credential : one;
    if (typeof credential !== 'string') throw new Error('the credential is no compact SD-JWT');
    return { compact: credential, jwk: { ...key.jwk }, sign: key.sign };
  }

  async #client(): Promise<Openid4vciClient> {
    const instance = await this.#createKey();
    const callbacks: Omit<Callbacks, 'clientAuthentication'> = {
      fetch,
      hash: (data, algorithm) => createHash(algorithm.replace('-', '')).update(data).digest(),
      generateRandom: (size) => randomBytes(size),
      signJwt: async (signer, { header, payload }) => {
        if (signer.method !== 'jwk') throw new Error(`the wallet cannot sign by ${signer.method}`);
        const key = this.#keys.get(String(signer.publicJwk.x)) ?? missing('key');
        return { jwt: await key.sign(header, payload), signerJwk: signer.publicJwk };
      },
    };
    const clientAuthentication = clientAuthenticationClientAttestationJwt({
      clientAttestationJwt: await this.#attest(instance),
      callbacks,
    });
    return new Openid4vciClient({ callbacks: { ...callbacks, clientAuthentication } });
  }

  async #attest({ jwk }: WalletKey): Promise<string> {
    const { key, certificate } = this.#maker;
    const x5c = [new X509Certificate(certificate).raw.toString('base64')];
    const now = Math.floor(Date.now() / 1000);
    return new SignJWT({ iss: clientId, sub: clientId, iat: now, exp: now + 600, cnf: { jwk: { ...jwk } } })
      .setProtectedHeader({ alg: 'ES256', typ: 'oauth-client-attestation+jwt', x5c })
      .sign(await importPKCS8(key, 'ES256'));
  }

  async #createKey(): Promise<WalletKey> {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
    const { kty = '', crv = '', x = '', y = '' }: JWK = await exportJWK(publicKey);
    const key: WalletKey = {
      jwk: { kty, crv, x, y },
      sign: (header, payload) =>
        new SignJWT({ ...payload }).setProtectedHeader({ alg: 'ES256', ...header }).sign(privateKey),
    };
    this.#keys.set(x, key);
    return key;
  }
}

function signerOf({ jwk }: WalletKey) {
  return { method: 'jwk', alg: 'ES256', publicJwk: { ...jwk } } as const;
}

function missing(what: string): never {
  throw new Error(`the wallet has no ${what}`);
}

/** What a person does in the browser: opens the page of the issuer, types the code, and follows where it leads. */
export function typeCode(txCode: string): (url: string) => Promise<string> {
  return async (url) => {
    const page = await fetch(url);
    const html = await page.text();
    const policy = page.headers.get('content-security-policy') ?? '';
    if (page.status !== 200 || !policy.includes('style-src'))
      throw new Error(`the page answered ${page.status}: ${html}`);
    const fields = [...html.matchAll(/name="(request_uri|client_id)" value="([^"]+)"/g)];
    const form = Object.fromEntries(fields.map(([, name = '', value = '']) => [name, value]));
    const [, action = ''] = /action="([^"]+)"/.exec(html) ?? [];
    const sent = await fetch(new URL(action, url), {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ ...form, tx_code: txCode }),
    });
    if (sent.status !== 303) throw new Error(`the form answered ${sent.status}`);
    return sent.headers.get('location') ?? '';
  };
}
