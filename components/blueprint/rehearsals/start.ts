import { randomUUIDv7 } from 'node:crypto';
import { execDefHash } from '#core/blueprint/hashes.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { AppError, isAppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { isUniqueViolation } from '#kit/db/db.ts';
import { organizationOf } from '../definitions/drafts/drafts.ts';
import type { Draft } from '../definitions/drafts/store.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { getPublishable, type PublishDeps } from '../definitions/publishing/publish.ts';
import { refusal } from '../errors.ts';
import { type CreateDeps, createInstance } from '../instances/create.ts';
import { creatorOf } from '../instances/view.ts';
import { type EndDeps, end, eraseAgain, walletName } from './ending.ts';
import { ensureSandbox, publishCopy, type SandboxDeps, sandboxCopy } from './sandbox.ts';
import {
  countUnderWay,
  findRehearsal,
  insertRehearsal,
  lockUnderWay,
  type Rehearsal,
  type Stage,
  storeStage,
} from './store.ts';

export interface StartDeps extends EndDeps, SandboxDeps, CreateDeps, Pick<PublishDeps, 'judge'> {
  readonly db: EndDeps['db'];
  readonly clock: EndDeps['clock'];
  readonly index: PublishDeps['index'];
  readonly meter: EndDeps['meter'] & SandboxDeps['meter'];
  readonly ownWallets: SandboxDeps['ownWallets'];
  /** This service itself, which takes the steps of rehearsals. */
  readonly self: () => Promise<Subject>;
}

/** Rehearsals that an organisation may have under way. */
const mostUnderWay = 50;
/** Attempts to take the place of the rehearsal that the same person has under way. */
const mostAttempts = 5;

/**
 * Starts a rehearsal of a draft and abandons the one that the caller has under way: the definition is published in the
 * sandbox of the organisation, with a wallet for each role, and an instance of it is created.
 * @throws AppError conflict BLUEPRINT_INVALID, unprocessable BLUEPRINT_UNAVAILABLE, REHEARSAL_LIMIT, forbidden
 * ORGANIZATION_REQUIRED, unavailable
 */
export async function startRehearsal(deps: StartDeps, caller: Caller, draft: Draft): Promise<Rehearsal> {
  const organizationId = organizationOf(caller);
  const definition = await getRehearsable(deps, draft);
  const { participants } = definition;
  const id = randomUUIDv7();
  const startedAt = new Date(deps.clock.nowMs());
  const rehearsal = {
    id,
    organizationId,
    draftId: draft.id,
    blueprintId: draft.blueprintId,
    execDefHash: execDefHash(definition),
    startedBy: creatorOf(caller),
    roles: Array.isArray(participants) ? participants.length : 0,
    startedAt,
    note: { at: startedAt.toISOString(), kind: 'info', message: 'the rehearsal has started' },
  } as const;
  await open(deps, rehearsal);
  try {
    const stage = await prepare(deps, { id, organizationId, definition });
    const isStored = await deps.db.transact((tx) => storeStage(tx, id, stage));
    // The same person has started another one meanwhile.
    if (!isStored) throw refusal('REHEARSAL_ENDED');
  } catch (error) {
    await giveUp(deps, id);
    throw error;
  }
  const made = await findRehearsal(deps.db.read, id);
  if (made === undefined) throw refusal('REHEARSAL_NOT_FOUND');
  return made;
}

/** Ends a rehearsal that could not be prepared. */
async function giveUp(deps: StartDeps, id: string): Promise<void> {
  const left = await findRehearsal(deps.db.read, id);
  if (left?.status === 'InProgress') await end(deps, left, 'Abandoned');
  else if (left !== undefined) await eraseAgain(deps, left);
}

async function getRehearsable(deps: Pick<PublishDeps, 'judge'>, draft: Draft): Promise<JsonObject> {
  try {
    return (await getPublishable(deps, draft)).definition;
  } catch (cause) {
    if (!isAppError(cause, 'invalid')) throw cause;
    const { violations = [], details } = cause;
    const errors = violations.map((each) => ({ ...each }));
    throw new AppError('conflict', 'BLUEPRINT_INVALID', cause.message, {
      cause,
      details: { ...details, errors },
    });
  }
}

type Opening = Parameters<typeof insertRehearsal>[1];

/**
 * Stores a rehearsal, in place of the former one of the same draft and person.
 * @throws AppError unprocessable REHEARSAL_LIMIT; REHEARSAL_ENDED when the same person starts others all the time
 */
async function open(deps: StartDeps, opening: Opening, attempts = mostAttempts): Promise<void> {
  const former = await deps.db.transact((tx) => lockUnderWay(tx, opening));
  if (former !== undefined) await end(deps, former, 'Abandoned');
  if ((await countUnderWay(deps.db.read, opening.organizationId)) >= mostUnderWay)
    throw refusal('REHEARSAL_LIMIT');
  try {
    await deps.db.transact((tx) => insertRehearsal(tx, opening));
  } catch (error) {
    // The same person has started another one at the same time.
    if (!isUniqueViolation(error, 'rehearsals_under_way')) throw error;
    if (attempts === 1) throw refusal('REHEARSAL_ENDED', { cause: error });
    await open(deps, opening, attempts - 1);
  }
}

interface Preparing {
  readonly id: string;
  readonly organizationId: string;
  readonly definition: JsonObject;
}

async function prepare(deps: StartDeps, { id, organizationId, definition }: Preparing): Promise<Stage> {
  const sandbox = await ensureSandbox(deps, organizationId);
  const { registerId } = sandbox;
  const wallets = await makeWallets(deps, id, definition);
  const copy = sandboxCopy(definition, { id: `rehearsal-${id}`, wallets });
  const pin = await publishCopy(deps, sandbox, copy);
  const participantWallets = await openRoles(deps, { registerId, pin, wallets });
  const request = {
    blueprintId: copy.id,
    registerId,
    publicationTxId: pin,
    participantWallets,
    metadata: {},
  };
  const { instanceId } = await createInstance(deps, await deps.self(), request, undefined);
  return { registerId, pin, instanceId, wallets };
}

async function makeWallets(
  { ownWallets }: StartDeps,
  id: string,
  { participants }: JsonObject,
): Promise<Record<string, string>> {
  const ids = (Array.isArray(participants) ? participants : []).map((each) => String(each.id));
  const made: [string, string][] = [];
  // In turn: when one fails, no other one is still being made.
  for (const [at, role] of ids.entries()) made.push([role, await ownWallets.ensure(walletName(id, at))]);
  return Object.fromEntries(made);
}

/** Wallets of the open roles that do not start: they read from the first step on. */
async function openRoles(
  { definitions }: StartDeps,
  { registerId, pin, wallets }: Pick<Stage, 'registerId' | 'pin' | 'wallets'>,
): Promise<Record<string, string>> {
  const { workflow } = await definitions.get(registerId, pin);
  const actions = [...workflow.actions.values()];
  const starters = new Set(actions.filter(({ isStarting }) => isStarting).map(({ sender }) => sender));
  const bound = Object.entries(wallets).filter(
    ([role]) => workflow.participants.get(role) === undefined && !starters.has(role),
  );
  return Object.fromEntries(bound);
}
