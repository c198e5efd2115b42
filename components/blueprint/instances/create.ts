import { randomUUIDv7 } from 'node:crypto';
import type { Workflow } from '#core/blueprint/steps/workflow.ts';
import { isWalletAddress } from '#core/crypto/address.ts';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { claimKey } from '#kit/db/idempotency.ts';
import type { Ledger } from '../clients/ledger.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import type { PublicationIndex } from '../definitions/publications/follow.ts';
import { findPublication } from '../definitions/publications/store.ts';
import type { CanRead, Subject } from '../definitions/publications/visibility.ts';
import { refusal } from '../errors.ts';
import type { Definitions } from './definitions.ts';
import { hasOpenStart } from './instance.ts';
import { insertStart } from './store.ts';
import { creatorOf } from './view.ts';

export interface CreateDeps {
  readonly db: Database<BlueprintDatabase>;
  readonly clock: Clock;
  readonly ledger: Pick<Ledger, 'findRegister'>;
  readonly index: Pick<PublicationIndex, 'read'>;
  readonly definitions: Pick<Definitions, 'get'>;
  readonly canRead: CanRead;
}

interface CreateRequest {
  readonly blueprintId: string;
  readonly registerId: string;
  readonly publicationTxId?: string | undefined;
  readonly participantWallets: Readonly<Record<string, string>>;
  readonly tenantId?: string | undefined;
  readonly metadata: Readonly<Record<string, string | number | boolean>>;
}

/**
 * Creates an instance of a published definition. The ledger learns of it with its first step. Callers that may not read the
 * register create instances of definitions with an open starting role alone.
 * @throws AppError not_found REGISTER_NOT_FOUND, unavailable REGISTER_UNAVAILABLE, conflict NOT_PUBLISHED, BLUEPRINT_NOT_AVAILABLE, PIN_UNRESOLVABLE,
 * invalid for wallets that cannot be bound
 */
export async function createInstance(
  deps: CreateDeps,
  subject: Subject,
  request: CreateRequest,
  key: string | undefined,
): Promise<{ readonly instanceId: string; readonly registerId: string; readonly isReplay: boolean }> {
  const { caller } = subject;
  const { registerId, blueprintId } = request;
  const isReader = await deps.canRead(subject, registerId);
  const pin = await choosePublication(deps, request);
  const { workflow } = await deps.definitions.get(registerId, pin);
  if (!isReader && !hasOpenStart(workflow)) throw refusal('REGISTER_NOT_FOUND');
  assertBindable(workflow, request.participantWallets);
  const instanceId = randomUUIDv7();
  const nowMs = deps.clock.nowMs();
  const repeated = { key, scope: ['create-instance', creatorOf(caller)], body: request };
  const known = await deps.db.transact(async (tx) => {
    const earlier = await claimKey(tx, repeated, { answer: instanceId, nowMs });
    if (earlier !== undefined) return earlier;
    await insertStart(tx, {
      instanceId,
      registerId,
      pin,
      blueprintId,
      participantWallets: request.participantWallets,
      tenantId: request.tenantId ?? caller.organizationId ?? 'default',
      metadata: request.metadata,
      createdBy: creatorOf(caller),
      organizationId: caller.organizationId,
      createdAt: new Date(nowMs),
    });
    return undefined;
  });
  return { instanceId: known ?? instanceId, registerId, isReplay: known !== undefined };
}

/** The publication that is asked for, or the latest sealed one; the index is brought up to date first. */
export async function choosePublication(
  deps: Pick<CreateDeps, 'db' | 'ledger' | 'index'>,
  request: Pick<CreateRequest, 'registerId' | 'blueprintId' | 'publicationTxId'>,
): Promise<string> {
  const { registerId, blueprintId, publicationTxId } = request;
  if ((await deps.ledger.findRegister(registerId)) === undefined) throw refusal('REGISTER_NOT_FOUND');
  await deps.index.read(registerId);
  const found = await findPublication(deps.db.read, { blueprintId, registerId, publicationTxId });
  if (found !== undefined) return found.publicationTxId;
  const details = { blueprintId, registerId };
  if (publicationTxId === undefined) throw refusal('NOT_PUBLISHED', { details });
  throw refusal('BLUEPRINT_NOT_AVAILABLE', { details: { ...details, error: 'blueprint_not_available' } });
}

/** Only open roles that do not start the workflow can be bound before it begins. */
function assertBindable(workflow: Workflow, wallets: Readonly<Record<string, string>>): void {
  const starters = new Set(
    [...workflow.actions.values()].filter(({ isStarting }) => isStarting).map(({ sender }) => sender),
  );
  for (const [participant, wallet] of Object.entries(wallets)) {
    const where = `participantWallets.${participant}`;
    if (!workflow.participants.has(participant))
      throw invalid(`${where}: the blueprint has no such participant`);
    if (workflow.participants.get(participant) !== undefined)
      throw invalid(`${where}: its wallet is in the blueprint`);
    if (starters.has(participant))
      throw invalid(`${where}: a role that starts the workflow is bound by its first action`);
    if (!isWalletAddress(wallet)) throw invalid(`${where} is not a wallet address`);
  }
}

function invalid(message: string): AppError {
  return new AppError('invalid', genericCode('invalid'), message);
}
