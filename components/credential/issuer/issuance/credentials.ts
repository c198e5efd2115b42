import { randomBytes } from 'node:crypto';
import { issueMdoc } from '#core/credential/mdoc/issue.ts';
import { compactSdJwt, prepareSdJwt } from '#core/credential/sd-jwt/issue.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { utf8 } from '#core/encoding/text.ts';
import { statusListUrl } from '../../status/tokens.ts';
import type { Configuration } from '../metadata/configuration.ts';
import type { Offer } from '../offers/offer.ts';
import { issuerHeader, issuerName } from '../signing/issuer-header.ts';
import type { Issuers } from '../signing/issuers.ts';
import { signAsIssuer } from '../signing/sign.ts';
import type { NewCredential } from './store.ts';

interface SignDeps {
  readonly issuers: Issuers;
  readonly issuerUrl: string;
}

/** What a credential states, of whom, and where its status is. */
export interface Drafted {
  readonly offer: Offer;
  readonly configuration: Configuration;
  readonly claims: JsonObject;
  readonly chain: readonly Uint8Array[];
  readonly holderKey: JsonObject;
  readonly place: NewCredential['place'];
  readonly now: Date;
}

interface SignedCredential {
  readonly credential: string;
  readonly expiresAt: Date | null;
}

/** Validity of an mdoc that the offer does not bound: the format has no credential without an end. */
const mdocSeconds = 365 * 86_400;

/** Makes and signs a credential in the format of its configuration. */
export async function signCredential(deps: SignDeps, drafted: Drafted): Promise<SignedCredential> {
  return drafted.configuration.format === 'mso_mdoc' ? signMdoc(deps, drafted) : signSdJwt(deps, drafted);
}

async function signSdJwt(deps: SignDeps, drafted: Drafted): Promise<SignedCredential> {
  const { offer, configuration, claims, chain, holderKey, now } = drafted;
  const iat = Math.floor(now.getTime() / 1000);
  const exp = offer.validitySeconds === null ? undefined : iat + offer.validitySeconds;
  const status = statusOf(deps, drafted);
  const unsigned = prepareSdJwt(
    {
      header: { alg: 'ES256', typ: 'dc+sd-jwt', ...issuerHeader(offer, chain) },
      payload: {
        iss: issuerName(offer, deps.issuerUrl),
        vct: configuration.credentialType,
        iat,
        ...(exp !== undefined && { exp }),
        cnf: { jwk: holderKey },
        ...(status !== undefined && { status: { status_list: { idx: status.index, uri: status.uri } } }),
      },
      claims,
      disclosable: offer.disclosable ?? undefined,
    },
    randomBytes,
  );
  const message = utf8(unsigned.signingInput);
  const signature = await signAsIssuer(deps.issuers, { issuer: offer, chain }, message);
  return {
    credential: compactSdJwt(unsigned, signature),
    expiresAt: exp === undefined ? null : new Date(exp * 1000),
  };
}

async function signMdoc(deps: SignDeps, drafted: Drafted): Promise<SignedCredential> {
  const { offer, configuration, claims, chain, holderKey, now } = drafted;
  const signedMs = now.getTime();
  const expiresAt = new Date(signedMs + (offer.validitySeconds ?? mdocSeconds) * 1000);
  const nameSpaces = Object.entries(claims).flatMap(([name, elements]) =>
    isJsonObject(elements) ? [[name, elements] as const] : [],
  );
  const credential = await issueMdoc(
    {
      docType: configuration.credentialType,
      nameSpaces: Object.fromEntries(nameSpaces),
      deviceKey: holderKey,
      signedMs,
      validFromMs: signedMs,
      validUntilMs: expiresAt.getTime(),
      status: statusOf(deps, drafted),
      certificates: chain,
    },
    {
      random: (size) => randomBytes(size),
      sign: (message) => signAsIssuer(deps.issuers, { issuer: offer, chain }, message),
    },
  );
  return { credential, expiresAt };
}

function statusOf({ issuerUrl }: SignDeps, { place }: Drafted) {
  return place && { index: place.index, uri: statusListUrl(issuerUrl, place.listId) };
}
