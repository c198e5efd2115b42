import { createHash, X509Certificate } from 'node:crypto';
import {
  isOpenid4vpAuthorizationRequestDcApi,
  type Openid4vpAuthorizationRequest,
  Openid4vpClient,
} from '@openid4vc/openid4vp';
import { CompactEncrypt, compactVerify, exportJWK, importJWK, importX509 } from 'jose';
import type { HeldCredential } from './openid4vc-wallet.ts';

type Callbacks = ConstructorParameters<typeof Openid4vpClient>[0]['callbacks'];

/** A request for presentations whose verifier the wallet has authenticated. */
interface VerifiedAsk {
  readonly request: Openid4vpAuthorizationRequest;
  readonly clientIdPrefix: string;
}

/** A wallet of another maker that answers verifiers: `@openid4vc/openid4vp`. */
export class Openid4vpWallet {
  readonly #client = new Openid4vpClient({ callbacks: callbacks() });

  /** Opens the link of a request; throws when the verifier is not the one of its client id. */
  async open(link: string): Promise<VerifiedAsk> {
    const parsed = this.#client.parseOpenid4vpAuthorizationRequest({ authorizationRequest: link });
    const { authorizationRequestPayload, client } = await this.#client.resolveOpenId4vpAuthorizationRequest({
      authorizationRequestPayload: parsed.params,
    });
    if (isOpenid4vpAuthorizationRequestDcApi(authorizationRequestPayload))
      throw new Error('the request is for the browser');
    return { request: authorizationRequestPayload, clientIdPrefix: client.prefix };
  }

  /** Answers by disclosing some claims of a credential; returns the status, and where to send the person. */
  async answer({ request }: VerifiedAsk, queryId: string, held: HeldCredential, names: readonly string[]) {
    const presentation = await present(request, held, names);
    const created = await this.#client.createOpenid4vpAuthorizationResponse({
      authorizationRequestPayload: request,
      authorizationResponsePayload: { vp_token: { [queryId]: [presentation] } },
      ...(request.response_mode === 'direct_post.jwt' && {
        jarm: {
          encryption: { nonce: 'unused' },
          serverMetadata: {
            authorization_signing_alg_values_supported: [],
            authorization_encryption_alg_values_supported: ['ECDH-ES'],
            authorization_encryption_enc_values_supported: ['A256GCM'],
          },
        },
      }),
    });
    const { response } = await this.#client.submitOpenid4vpAuthorizationResponse({
      authorizationRequestPayload: request,
      ...created,
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
  }
}

/** A presentation of some claims, bound to a request. */
export async function present(
  {
    client_id: audience,
    nonce,
  }: { readonly client_id?: string | undefined; readonly nonce?: string | undefined },
  held: HeldCredential,
  names: readonly string[],
): Promise<string> {
  const [jws = '', ...rest] = held.compact.split('~');
  const chosen = rest.slice(0, -1).filter((one) => {
    const [, name] = JSON.parse(Buffer.from(one, 'base64url').toString());
    return names.includes(name);
  });
  const bound = [jws, ...chosen, ''].join('~');
  const binding = await held.sign(
    { typ: 'kb+jwt' },
    {
      iat: Math.floor(Date.now() / 1000),
      aud: audience,
      nonce,
      sd_hash: createHash('sha256').update(bound).digest('base64url'),
    },
  );
  return `${bound}${binding}`;
}

function callbacks(): Callbacks {
  return {
    fetch,
    hash: (data, algorithm) => createHash(algorithm.replace('-', '')).update(data).digest(),
    signJwt: () => {
      throw new Error('the wallet signs nothing for the library');
    },
    decryptJwe: () => ({ decrypted: false }),
    verifyJwt: async (signer, { compact }) => {
      if (signer.method !== 'x5c') throw new Error(`the request is signed by ${signer.method}`);
      const [leaf = ''] = signer.x5c;
      const pem = new X509Certificate(Buffer.from(leaf, 'base64')).toString();
      const key = await importX509(pem, 'ES256', { extractable: true });
      await compactVerify(compact, key);
      const { kty = 'EC', crv = '', x = '', y = '' } = await exportJWK(key);
      return { verified: true, signerJwk: { kty, crv, x, y } };
    },
    encryptJwe: async ({ publicJwk, alg, enc }, data) => {
      const { kty, crv = '', x = '', y = '', kid } = publicJwk;
      const jwe = await new CompactEncrypt(Buffer.from(data))
        .setProtectedHeader({ alg, enc, ...(kid !== undefined && { kid }) })
        .encrypt(await importJWK({ kty, crv, x, y }, alg));
      return { encryptionJwk: publicJwk, jwe };
    },
    getX509CertificateMetadata: (certificate) => {
      const { subjectAltName = '' } = new X509Certificate(Buffer.from(certificate, 'base64'));
      const names = subjectAltName.split(', ');
      const of = (prefix: string) =>
        names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
      return { sanDnsNames: of('DNS:'), sanUriNames: of('URI:') };
    },
  };
}
