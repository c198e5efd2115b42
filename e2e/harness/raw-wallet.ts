import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { z } from 'zod';
import type { Answer, Api } from './api.ts';
import type { IssuingOrganization } from './issuing-organization.ts';

const grantType = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';
const taken = z.object({ access_token: z.string() });
const given = z.object({ c_nonce: z.string() });
const offered = z.object({
  credential_issuer: z.string(),
  credential_configuration_ids: z.tuple([z.string()]),
  grants: z.object({ [grantType]: z.object({ 'pre-authorized_code': z.string() }) }),
});

/** An accepted offer: what a request for its credential needs. */
export interface AcceptedOffer {
  readonly offerId: string;
  readonly issuer: string;
  readonly configurationId: string;
  readonly token: string;
}

/** The requests of a wallet in openid4vc-1.0, each as the test wants it. */
export interface RawWallet {
  /** Redeems a pre-authorized code; members are added to the form. */
  redeem(code: string, more?: Readonly<Record<string, string>>): Promise<Answer>;
  nonce(): Promise<string>;
  /** Makes an offer and redeems its code. */
  accept(organization: IssuingOrganization): Promise<AcceptedOffer>;
  /** A proof with a key and a nonce of its own; members replace those of a valid one. */
  proof(issuer: string, payload?: JWTPayload): Promise<string>;
  /** Asks for credentials; an empty token is not sent. */
  credential(
    offer: Pick<AcceptedOffer, 'token' | 'configurationId'>,
    jwt: readonly string[],
  ): Promise<Answer>;
}

/** An offer as its link says it. */
export function readOffer(link: string) {
  const { grants, credential_issuer, credential_configuration_ids } = offered.parse(
    JSON.parse(new URL(link).searchParams.get('credential_offer') ?? ''),
  );
  const code = grants[grantType]['pre-authorized_code'];
  return { code, issuer: credential_issuer, configurationId: credential_configuration_ids[0] };
}

/** @param api gives the interface at each call, as an installation may not run yet */
export function createRawWallet(api: () => Api): RawWallet {
  const redeem: RawWallet['redeem'] = (code, more = {}) =>
    api().send('POST', '/token', { form: { grant_type: grantType, 'pre-authorized_code': code, ...more } });
  const nonce = async () => given.parse((await api().expect(200, 'POST', '/nonce')).body).c_nonce;
  return {
    redeem,
    nonce,
    accept: async (organization) => {
      const { offerId, credentialOfferUri } = await organization.offer();
      const { code, ...offer } = readOffer(credentialOfferUri);
      return { ...offer, offerId, token: taken.parse((await redeem(code)).body).access_token };
    },
    proof: async (aud, payload = {}) => {
      const { publicKey, privateKey } = await generateKeyPair('ES256');
      const valid = { aud, iat: Math.floor(Date.now() / 1000), nonce: await nonce() };
      return new SignJWT({ ...valid, ...payload })
        .setProtectedHeader({
          typ: 'openid4vci-proof+jwt',
          alg: 'ES256',
          jwk: await exportJWK(publicKey),
        })
        .sign(privateKey);
    },
    credential: ({ token, configurationId }, jwt) =>
      api().send('POST', '/credential', {
        ...(token !== '' && { token }),
        json: { credential_configuration_id: configurationId, proofs: { jwt } },
      }),
  };
}
