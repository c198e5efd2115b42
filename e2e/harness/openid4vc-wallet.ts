import { createHash, randomBytes } from 'node:crypto';
import { Openid4vciClient, setGlobalConfig } from '@openid4vc/openid4vci';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';

// Local mode listens on plain HTTP of this machine.
setGlobalConfig({ allowInsecureUrls: true });

type Callbacks = ConstructorParameters<typeof Openid4vciClient>[0]['callbacks'];

/** A credential that the wallet holds, with the key that it is bound to. */
export interface HeldCredential {
  readonly compact: string;
  readonly jwk: JWK;
  /** Signs a JWT with the key. */
  sign(
    header: Readonly<Record<string, unknown>>,
    payload: Readonly<Record<string, unknown>>,
  ): Promise<string>;
}

interface WalletKey {
  readonly jwk: JWK;
  readonly privateKey: Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];
}

interface Taking {
  /** What the person types. */
  readonly txCode?: string;
  /** Binds the token to a key (RFC 9449). */
  readonly dpop?: true;
  /** Number of credentials; one when absent. */
  readonly count?: number;
}

/** A wallet of another maker: `@openid4vc/openid4vci` with keys of node:crypto. */
export class Openid4vcWallet {
  readonly #keys = new Map<string, WalletKey>();
  readonly #client: Openid4vciClient;

  constructor() {
    this.#client = new Openid4vciClient({ callbacks: this.#callbacks() });
  }

  /** Takes an offer from its link, as a wallet does that scanned it. */
  async take(link: string, { txCode, dpop, count = 1 }: Taking = {}): Promise<readonly HeldCredential[]> {
    const client = this.#client;
    const credentialOffer = await client.resolveCredentialOffer(link);
    const issuerMetadata = await client.resolveIssuerMetadata(credentialOffer.credential_issuer);
    const [credentialConfigurationId = ''] = credentialOffer.credential_configuration_ids;
    const bound = dpop === undefined ? undefined : { signer: await this.#signer() };
    const given = await client.retrievePreAuthorizedCodeAccessTokenFromOffer({
      credentialOffer,
      issuerMetadata,
      ...(txCode !== undefined && { txCode }),
      ...(bound !== undefined && { dpop: bound }),
    });
    const { c_nonce: nonce } = await client.requestNonce({ issuerMetadata });
    const signers = await Promise.all(Array.from({ length: count }, () => this.#signer()));
    const proofs = await Promise.all(
      signers.map((signer) =>
        client.createCredentialRequestJwtProof({ issuerMetadata, credentialConfigurationId, signer, nonce }),
      ),
    );
    const { credentialResponse } = await client.retrieveCredentials({
      issuerMetadata,
      credentialConfigurationId,
      accessToken: given.accessTokenResponse.access_token,
      proofs: { jwt: proofs.map(({ jwt }) => jwt) },
      ...(given.dpop !== undefined && { dpop: given.dpop }),
    });
    const issued = credentialResponse.credentials ?? [];
    return issued.map((one, index) => this.#held(compactOf(one), signers[index]?.publicJwk ?? {}));
  }

  #held(compact: string, jwk: JWK): HeldCredential {
    return { compact, jwk, sign: (header, payload) => this.#sign(keyOf(jwk), header, payload) };
  }

  async #signer() {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
    const { kty = 'EC', ...rest } = await exportJWK(publicKey);
    const publicJwk = { kty, ...rest };
    this.#keys.set(keyOf(publicJwk), { jwk: publicJwk, privateKey });
    return { method: 'jwk', alg: 'ES256', publicJwk } as const;
  }

  async #sign(
    id: string,
    header: Readonly<Record<string, unknown>>,
    payload: Readonly<Record<string, unknown>>,
  ): Promise<string> {
    const key = this.#keys.get(id);
    if (key === undefined) throw new Error('the wallet has no such key');
    return new SignJWT({ ...payload }).setProtectedHeader({ alg: 'ES256', ...header }).sign(key.privateKey);
  }

  #callbacks(): Callbacks {
    return {
      fetch,
      hash: (data, algorithm) => createHash(algorithm.replace('-', '')).update(data).digest(),
      generateRandom: (size) => randomBytes(size),
      clientAuthentication: () => undefined,
      signJwt: async (signer, { header, payload }) => {
        if (signer.method !== 'jwk') throw new Error(`the wallet cannot sign by ${signer.method}`);
        return {
          jwt: await this.#sign(keyOf(signer.publicJwk), header, payload),
          signerJwk: signer.publicJwk,
        };
      },
    };
  }
}

function keyOf({ x, y }: { readonly x?: string | undefined; readonly y?: string | undefined }): string {
  return `${x}.${y}`;
}

function compactOf(issued: unknown): string {
  const credential =
    typeof issued === 'object' && issued !== null && 'credential' in issued ? issued.credential : issued;
  if (typeof credential !== 'string') throw new Error('the credential is no compact SD-JWT');
  return credential;
}
