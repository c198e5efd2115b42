import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { equalSecrets } from '#core/crypto/hash.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { createSecret, openObjectUnder, sealUnder, secretHash, txCodeHash } from '../../protocol/secrets.ts';
import { mostTxCodeTries, statusAt } from '../offers/offer.ts';
import { countTxCodeTry, endOffer, type LockedOffer, lockOffer } from '../offers/store.ts';
import { deletePushed, insertCode, lockPushed, type PushedRequest } from './store.ts';

const codeSeconds = 60;

export interface ApproveDeps {
  readonly db: Database<CredentialDatabase>;
  readonly clock: Clock;
  readonly issuerUrl: string;
}

/** What the person sees next. */
export type Approval =
  /** The request is unknown, used or expired: nothing says where the person came from. */
  | { readonly kind: 'gone' }
  /** The transaction code is asked for; `triesLeft` after a wrong one. */
  | {
      readonly kind: 'form';
      readonly length: number;
      readonly isNumeric: boolean;
      /** What the offer says of the code. */
      readonly description: string | undefined;
      readonly triesLeft?: number;
    }
  | { readonly kind: 'redirect'; readonly to: string };

interface Asking {
  readonly requestUri: string;
  readonly clientId: string;
  /** Undefined before the person has typed it. */
  readonly txCode: string | undefined;
}

/**
 * Signs in the person to whom an offer was made: by the transaction code that reached them another way. A right one gives
 * the wallet a code that can be exchanged within 60 s; the fifth wrong one ends the offer.
 */
export async function approve({ db, clock, issuerUrl }: ApproveDeps, asking: Asking): Promise<Approval> {
  const now = new Date(clock.nowMs());
  return db.transact(async (tx) => {
    const requestHash = secretHash(asking.requestUri);
    const request = await lockPushed(tx, requestHash);
    if (request === undefined || request.expiresAt <= now || request.clientId !== asking.clientId)
      return { kind: 'gone' };
    const offer = await lockOffer(tx, request.offerId);
    const isOpen = offer !== undefined && statusAt(offer, now) === 'Pending';
    if (!isOpen) {
      await deletePushed(tx, requestHash);
      return back(request, issuerUrl, { error: 'access_denied' });
    }
    if (asking.txCode === undefined) return formOf(offer);
    const secrets = openSecrets(asking.requestUri, request);
    const isRight =
      offer.txCodeHash !== null &&
      equalSecrets(txCodeHash(secrets.issuerState, asking.txCode), offer.txCodeHash);
    if (!isRight) return refuseTry(tx, { request, requestHash, offer, issuerUrl, now });
    await deletePushed(tx, requestHash);
    const code = createSecret(randomBytes);
    await insertCode(tx, secretHash(code), {
      ...request,
      sealedClaims: sealUnder(code, offer.id, { plain: canonicalBytes(secrets.claims), random: randomBytes }),
      expiresAt: new Date(now.getTime() + codeSeconds * 1000),
    });
    return back(request, issuerUrl, { code });
  });
}

interface Refused {
  readonly request: PushedRequest;
  readonly requestHash: Buffer;
  readonly offer: LockedOffer;
  readonly issuerUrl: string;
  readonly now: Date;
}

async function refuseTry(tx: Transactor<CredentialDatabase>, refused: Refused): Promise<Approval> {
  const { request, requestHash, offer, issuerUrl, now } = refused;
  const tries = await countTxCodeTry(tx, offer.id);
  if (tries < mostTxCodeTries) return { ...formOf(offer), triesLeft: mostTxCodeTries - tries };
  await endOffer(tx, offer.id, { status: 'Expired', reason: 'tx_code', at: now });
  await deletePushed(tx, requestHash);
  return back(request, issuerUrl, { error: 'access_denied' });
}

function formOf({ txCodeForm }: LockedOffer): Extract<Approval, { kind: 'form' }> {
  const { length = 0, inputMode, description } = txCodeForm ?? {};
  return { kind: 'form', length, isNumeric: inputMode === 'numeric', description };
}

const secretsSchema = z.object({
  issuerState: z.string(),
  claims: z.custom<JsonObject>(isJsonObject),
});

function openSecrets(requestUri: string, { offerId, sealed }: PushedRequest) {
  return secretsSchema.parse(openObjectUnder(requestUri, offerId, sealed));
}

/** The address of the wallet with the answer; `iss` says which issuer gave it (RFC 9207). */
function back(
  { redirectUri, state }: PushedRequest,
  issuerUrl: string,
  answer: Readonly<Record<string, string>>,
): Approval {
  const url = new URL(redirectUri);
  for (const [name, value] of Object.entries({ ...answer, iss: issuerUrl }))
    url.searchParams.set(name, value);
  if (state !== null) url.searchParams.set('state', state);
  return { kind: 'redirect', to: url.href };
}
