import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { VerifierIdentity } from '../identity/identity.ts';
import { requestObject } from './request-object.ts';
import { findRequest } from './store.ts';

export interface ReadObjectDeps {
  readonly db: Pick<Database<CredentialDatabase>, 'read'>;
  readonly clock: Clock;
  readonly verifier: () => VerifierIdentity;
  readonly issuerUrl: string;
}

/**
 * The signed object of a request that waits for its answer.
 * @param id a UUID
 * @throws AppError not_found REQUEST_NOT_FOUND, gone REQUEST_ENDED
 */
export async function readRequestObject(
  { db, clock, verifier, issuerUrl }: ReadObjectDeps,
  id: string,
  walletNonce: string | undefined,
): Promise<string> {
  const request = await findRequest(db.read, id);
  if (request === undefined) throw refusal('REQUEST_NOT_FOUND');
  const isOpen = request.status === 'Pending' && request.expiresAt.getTime() > clock.nowMs();
  if (!isOpen) throw refusal('REQUEST_ENDED');
  return requestObject(request, { verifier: verifier(), issuerUrl, walletNonce });
}
